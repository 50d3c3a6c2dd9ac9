//! The kernels that this process launches on a device, by CUPTI: from any library, below any layer of torch, on any thread.
//!
//! A thread says when it enters and leaves work that is accounted for. Launches in between belong to that work; launches outside are unaccounted. It knows
//! nothing of torch and Triton, and does nothing where CUPTI is not loaded, as torch's builds for CUDA load it.

use std::{
    cell::RefCell,
    collections::BTreeSet,
    ffi::{CStr, c_char, c_int, c_void},
    mem, ptr,
    sync::{
        Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

/// The names under which CUPTI may be loaded.
const LIBRARIES: [&CStr; 2] = [c"libcupti.so.13", c"libcupti.so.12"];

/// The domains of callbacks: the driver's functions, and the runtime's.
const DOMAINS: [u32; 2] = [1, 2];

/// A callback at the beginning of a function.
const ENTER: u32 = 0;

/// The most names that are kept of one kind.
const MOST: usize = 256;

/// The beginning of `CUpti_CallbackData` (`cupti_callbacks.h`), up to the last field that is read.
#[repr(C)]
struct CallbackData {
    site: u32,
    function: *const c_char,
    parameters: *const c_void,
    returned: *mut c_void,
    symbol: *const c_char,
}

type Callback = extern "C" fn(*mut c_void, u32, u32, *const CallbackData);
type Subscribe = unsafe extern "C" fn(*mut *mut c_void, Callback, *mut c_void) -> c_int;
type EnableDomain = unsafe extern "C" fn(u32, *mut c_void, u32) -> c_int;

/// CUPTI, subscribed to.
struct Cupti {
    enable: EnableDomain,
    /// The subscriber's handle, as an address: CUPTI may be called from any thread.
    subscriber: usize,
}

/// The launches since counting began.
#[derive(Default)]
struct Seen {
    symbols: BTreeSet<String>,
    unaccounted: BTreeSet<String>,
}

static CUPTI: OnceLock<Option<Cupti>> = OnceLock::new();
static COUNTS: AtomicBool = AtomicBool::new(false);
static SEEN: Mutex<Seen> = Mutex::new(Seen { symbols: BTreeSet::new(), unaccounted: BTreeSet::new() });

thread_local! {
    /// The work that this thread is in, the innermost last, with the launches of each so far.
    static WORK: RefCell<Vec<Vec<String>>> = const { RefCell::new(Vec::new()) };
}

/// Starts counting from zero. Returns whether it does: CUPTI must be loaded, and have no other subscriber.
pub(crate) fn begin() -> bool {
    let Some(cupti) = CUPTI.get_or_init(subscribe) else { return false };
    *SEEN.lock().unwrap_or_else(PoisonError::into_inner) = Seen::default();
    COUNTS.store(true, Ordering::SeqCst);
    switch(cupti, true)
}

/// Stops counting. Returns the names of all launched kernels, and of those that nothing accounts for.
pub(crate) fn end() -> (Vec<String>, Vec<String>) {
    COUNTS.store(false, Ordering::SeqCst);
    if let Some(Some(cupti)) = CUPTI.get() {
        switch(cupti, false);
    }
    let seen = mem::take(&mut *SEEN.lock().unwrap_or_else(PoisonError::into_inner));
    (seen.symbols.into_iter().collect(), seen.unaccounted.into_iter().collect())
}

/// Enters work that is accounted for, on this thread.
pub(crate) fn enter() {
    WORK.with_borrow_mut(|work| work.push(Vec::new()));
}

/// Leaves the work that this thread entered last. Returns the names of the kernels that it launched itself.
pub(crate) fn leave() -> Vec<String> {
    WORK.with_borrow_mut(Vec::pop).unwrap_or_default()
}

fn switch(cupti: &Cupti, is_on: bool) -> bool {
    // SAFETY: the function is CUPTI's, and the handle is one that it gave.
    let enabled = |domain| unsafe { (cupti.enable)(u32::from(is_on), cupti.subscriber as *mut c_void, domain) } == 0;
    DOMAINS.map(enabled).into_iter().all(|worked| worked)
}

/// Subscribes to CUPTI, if this process has loaded it.
fn subscribe() -> Option<Cupti> {
    let library = LIBRARIES.into_iter().find_map(loaded)?;
    let [subscribe, enable] = [c"cuptiSubscribe", c"cuptiEnableDomain"].map(|name| {
        // SAFETY: the handle is of a library that stays loaded.
        unsafe { libc::dlsym(library, name.as_ptr()) }
    });
    if subscribe.is_null() || enable.is_null() {
        return None;
    }
    // SAFETY: the types are those that CUPTI's header declares for these names.
    let (subscribe, enable): (Subscribe, EnableDomain) = unsafe {
        (mem::transmute::<*mut c_void, Subscribe>(subscribe), mem::transmute::<*mut c_void, EnableDomain>(enable))
    };
    let mut subscriber = ptr::null_mut();
    // SAFETY: the callback and its data live as long as the process.
    let result = unsafe { subscribe(&raw mut subscriber, heard, ptr::null_mut()) };
    (result == 0).then_some(Cupti { enable, subscriber: subscriber as usize })
}

/// Returns the handle of a library that this process has loaded already.
fn loaded(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: nothing is loaded, so no code of the library runs.
    let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_NOW) };
    (!library.is_null()).then_some(library)
}

/// CUPTI's callback: a function of the driver or the runtime begins, on the thread that called it.
extern "C" fn heard(_: *mut c_void, _: u32, _: u32, data: *const CallbackData) {
    if !COUNTS.load(Ordering::Relaxed) || data.is_null() {
        return;
    }
    // SAFETY: CUPTI gives a pointer that is good for the length of this call.
    let data = unsafe { &*data };
    let Some(function) = text(data.function) else { return };
    if data.site != ENTER || !is_launch(&function) {
        return;
    }
    let symbol = text(data.symbol).unwrap_or(function);
    let is_accounted = WORK.with_borrow_mut(|work| {
        let innermost = work.last_mut();
        let is_some = innermost.is_some();
        if let Some(names) = innermost
            && names.len() < MOST
        {
            names.push(symbol.clone());
        }
        is_some
    });
    let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    if !is_accounted && seen.unaccounted.len() < MOST {
        seen.unaccounted.insert(symbol.clone());
    }
    if seen.symbols.len() < MOST {
        seen.symbols.insert(symbol);
    }
}

/// Tells whether a function of the driver or the runtime launches kernels.
fn is_launch(function: &str) -> bool {
    let is_of_kernels = ["cuLaunch", "cudaLaunch", "cuGraphLaunch", "cudaGraphLaunch"];
    is_of_kernels.iter().any(|name| function.starts_with(name)) && !function.contains("HostFunc")
}

fn text(pointer: *const c_char) -> Option<String> {
    // SAFETY: CUPTI's strings end with a zero and live as long as the callback.
    (!pointer.is_null()).then(|| unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned())
}
