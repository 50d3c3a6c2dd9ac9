//! What people are told, and when: after a rejection, on narrow terminals, where nothing can be written, before anything is lost.

use crate::project::Project;

