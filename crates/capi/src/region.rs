//! Regions of a program in the profile.

use std::ffi::{c_char, c_int};
use std::sync::Arc;

use titin_runtime::ProfileRegion;

use crate::error::{keep, null};
use crate::handle::{Handle, StickyInstance, on_instance};
use crate::input;

/// The `titin_region` of the header. Shares the instance, so that a region may end after the
/// instance.
pub struct ProgramRegion {
    shared: Arc<StickyInstance>,
    region: ProfileRegion,
}

/// # Safety
/// `handle` is NULL or an instance; `name` is NULL or ends with a NUL.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_region_begin(
    handle: *mut Handle,
    name: *const c_char,
) -> *mut ProgramRegion {
    let mut begun = std::ptr::null_mut();
    // SAFETY: as the caller promises.
    unsafe {
        on_instance(handle, |handle| {
            let name = input::text(name, "name of the region")?;
            let shared = handle.shared.clone();
            begun = Box::into_raw(Box::new(ProgramRegion {
                region: shared.instance.begin_region(name),
                shared,
            }));
            Ok(())
        })
    };
    begun
}

/// # Safety
/// `region` is NULL or a region that no code uses any more.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_region_end(region: *mut ProgramRegion) -> c_int {
    if region.is_null() {
        return keep(null("region", "titin_region_begin"));
    }
    // SAFETY: as the caller promises; the region was made by `titin_region_begin`.
    let ProgramRegion { shared, region } = *unsafe { Box::from_raw(region) };
    shared.run(|| {
        shared.instance.end_region(region);
        Ok(())
    })
}
