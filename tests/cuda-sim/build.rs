//! Names the library as the driver's bindings look for it: `libcuda.so` is the first name that cudarc tries, so once this
//! library is loaded by its path, the dynamic linker answers that name with it, driver or no driver on the machine.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libcuda.so");
}
