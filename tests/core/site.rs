//! The pages of the site: its table of contents has each of them, and every link between them leads to a page and a heading that are there.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// What `docs/site/build` takes beside pages.
const OTHERS: [&str; 2] = ["LICENSE", "assets/speedups.svg"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the files of the site, from the root of the repository.
fn files() -> BTreeSet<PathBuf> {
    let mut files: BTreeSet<PathBuf> = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(PathBuf::from).into();
    files.extend(OTHERS.map(PathBuf::from));
    for ending in ["md", "yml", "json", "png"] {
        let below = t2t_store::fs::files_below(&root().join("docs"), ending);
        files.extend(below.iter().map(|file| file.strip_prefix(root()).unwrap().to_owned()));
    }
    for example in fs::read_dir(root().join("examples")).unwrap() {
        let page = example.unwrap().path().join("README.md");
        files.extend(page.exists().then(|| page.strip_prefix(root()).unwrap().to_owned()));
    }
    files.retain(|file| !file.starts_with("docs/site"));
    files
}

/// Returns the pages of the site.
fn pages() -> BTreeSet<PathBuf> {
    files().into_iter().filter(|file| file.extension().is_some_and(|ending| ending == "md")).collect()
}

/// Returns the links of a page to other pages, as they are written: those outside of fenced blocks, of no other host.
fn links(text: &str) -> Vec<&str> {
    let prose = text.split("```").step_by(2);
    let targets = prose.flat_map(|part| part.split("](").skip(1)).map(|after| after.split([')', ' ']).next().unwrap());
    targets.filter(|target| !target.is_empty() && !target.contains([':', '`', '\n'])).collect()
}

/// Returns the place that a link of `page` leads to.
fn followed(page: &Path, target: &str) -> PathBuf {
    let mut place = page.parent().unwrap().to_owned();
    for part in Path::new(target).components() {
        match part {
            Component::ParentDir => assert!(place.pop(), "{} links to {target}", page.display()),
            part => place.push(part),
        }
    }
    place
}

/// Returns the names by which links lead to the headings of a page, as GitHub and mdBook make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let prose: String = text.split("```").step_by(2).collect();
    let headings = prose.lines().filter(|line| line.starts_with('#'));
    let name = |heading: &str| {
        let kept = heading.trim_start_matches('#').trim().chars();
        let kept = kept.filter(|letter| letter.is_alphanumeric() || [' ', '-', '_'].contains(letter));
        kept.map(|letter| if letter == ' ' { '-' } else { letter.to_ascii_lowercase() }).collect()
    };
    headings.map(name).collect()
}

#[test]
fn the_table_of_contents_has_each_page_once() {
    let contents = Path::new("docs/site/SUMMARY.md");
    let text = fs::read_to_string(root().join(contents)).unwrap();
    let listed: Vec<PathBuf> = links(&text).into_iter().map(|target| followed(contents, target)).collect();
    let distinct: BTreeSet<PathBuf> = listed.iter().cloned().collect();
    assert_eq!(distinct.len(), listed.len(), "a page is listed twice");
    assert_eq!(distinct, pages());
}

#[test]
fn every_link_between_pages_leads_to_a_page_and_a_heading_that_are_there() {
    let files = files();
    let (mut count, mut wrong) = (0, Vec::new());
    for page in pages() {
        let text = fs::read_to_string(root().join(&page)).unwrap();
        for link in links(&text) {
            count += 1;
            let (target, anchor) = link.split_once('#').map_or((link, None), |(target, anchor)| (target, Some(anchor)));
            let place = if target.is_empty() { page.clone() } else { followed(&page, target) };
            let is_there = files.contains(&place)
                && anchor
                    .is_none_or(|anchor| anchors(&fs::read_to_string(root().join(&place)).unwrap()).contains(anchor));
            if !is_there {
                wrong.push(format!("{} links to `{link}`", page.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 150, "{count} links");
}

#[test]
fn a_link_to_a_readme_leads_to_the_page_that_mdbook_makes_of_it() {
    let settings = fs::read_to_string(root().join("docs/site/book.toml")).unwrap();
    let redirects = settings.lines().filter(|line| line.ends_with(" = \"index.html\"")).count();
    let readmes: Vec<PathBuf> = pages().into_iter().filter(|page| page.ends_with("README.md")).collect();
    for page in &readmes {
        let line = format!("\"/{}\" = \"index.html\"", page.with_extension("html").display());
        assert!(settings.lines().any(|other| other == line), "docs/site/book.toml has no line `{line}`");
    }
    assert_eq!(redirects, readmes.len());
}
