//! Regions of the program's own in the profile.

use std::ffi::{c_char, c_int};
use std::sync::Arc;

use titin_runtime::ProfileRegion;

use crate::error::{keep, null};
use crate::handle::{Handle, Shared, on_instance};
use crate::input;

/// What `titin_region` points to: with a share of its instance, so that one that is ended after it does no harm.
pub struct Begun {
    shared: Arc<Shared>,
    region: ProfileRegion,
}

/// # Safety
/// `handle` is NULL or an instance; `name` is NULL or ends with a NUL.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_region_begin(handle: *mut Handle, name: *const c_char) -> *mut Begun {
    let mut begun = std::ptr::null_mut();
    // SAFETY: as the caller promises.
    unsafe {
        on_instance(handle, |handle| {
            let name = input::text(name, "name of the region")?;
            let shared = handle.shared.clone();
            begun = Box::into_raw(Box::new(Begun {
                region: shared.instance.begin_region(name),
                shared,
            }));
            Ok(())
        })
    };
    begun
}

/// # Safety
/// `region` is NULL or a region that nobody uses any more.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_region_end(region: *mut Begun) -> c_int {
    if region.is_null() {
        return keep(null("region", "titin_region_begin"));
    }
    // SAFETY: as the caller promises; it was made by `titin_region_begin`.
    let Begun { shared, region } = *unsafe { Box::from_raw(region) };
    shared.run(|| {
        shared.instance.end_region(region);
        Ok(())
    })
}
