//! Writes `config/crd/`: one file for each definition. A generated file whose
//! definition is gone is removed.

use std::error::Error;
use std::fs;
use std::path::Path;

use crds::manifest;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../config/crd");
    fs::create_dir_all(&folder)?;
    for entry in fs::read_dir(&folder)? {
        let path = entry?.path();
        if fs::read_to_string(&path)?.starts_with(manifest::HEADER) {
            fs::remove_file(&path)?;
        }
    }
    for manifest in manifest::all()? {
        fs::write(folder.join(&manifest.file_name), &manifest.yaml)?;
        println!("wrote config/crd/{}", manifest.file_name);
    }
    Ok(())
}
