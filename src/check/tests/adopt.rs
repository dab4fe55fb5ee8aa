//! Points whose catalog is lost.

use std::path::Path;
use std::sync::Arc;

use disk::Disk;
use disk::sim::{Crash, SimDisk};

use super::super::adopt::{Owner, adopt};
use super::directory::{NOW_NS, data_dir, directory, fork, layout, points, run, with_suffix};
use crate::catalog::{Bytes, FieldType, PasswordHash};
use crate::checkpoint::{Manifest, open};

fn run_adoption(disk: &SimDisk) -> Result<(bool, String), String> {
    let owner = Owner {
        email: "new@owner.example".to_owned(),
        password: PasswordHash {
            memory_kib: 1,
            passes: 1,
            lanes: 1,
            salt: Bytes([1; 16]),
            hash: Bytes([2; 32]),
        },
    };
    let mut report = String::new();
    let done = adopt(&data_dir(disk), &owner, NOW_NS, &mut |what| report += &what)?;
    Ok((done, report))
}

fn overwrite(path: &Path) -> impl Fn(&SimDisk) + '_ {
    move |disk| disk.edit(path, |bytes| bytes.fill(0xA5))
}

/// A directory without runs, whose log does not contain the catalog either.
fn without_catalog() -> SimDisk {
    let disk = directory();
    for path in with_suffix(&disk, ".run") {
        overwrite(&path)(&disk);
    }
    disk
}

/// An older program would set runs and blocks aside that it cannot read.
#[test]
fn a_directory_of_a_newer_program_is_not_adopted() {
    let disk = without_catalog();
    disk.edit(&Manifest::path(&layout().data_dir), |bytes| {
        bytes[..8].copy_from_slice(b"TWMANI99")
    });
    let before = disk.files();
    let error = run_adoption(&disk).unwrap_err();
    assert!(error.contains("newer program"), "{error}");
    assert_eq!(disk.files(), before);
}

fn assert_adopted(disk: &SimDisk) {
    assert_eq!(points(disk), Ok(200));
    let port: Arc<dyn Disk> = Arc::new(disk.clone());
    let opened = open(&port, &layout()).unwrap_or_else(|error| panic!("{error}"));
    let user = opened.catalog.user_by_email("new@owner.example").unwrap();
    let bucket = opened.catalog.bucket_by_ordinal(1).unwrap();
    assert_eq!(bucket.organization_id, user.organization_id);
    let sources: Vec<_> = opened.catalog.sources_of(bucket.id).collect();
    assert_eq!(sources.len(), 2);
    for source in sources {
        let fields: Vec<_> = source
            .schema
            .fields
            .iter()
            .map(|it| (&*it.name, it.kind))
            .collect();
        assert_eq!(fields, [("field0", FieldType::Number)]);
    }
    let (whole, report) = run(disk, false);
    assert!(whole, "{report}");
}

#[test]
fn points_without_a_catalog_are_adopted() {
    let manifest = Manifest::path(&layout().data_dir);
    let lost: [&dyn Fn(&SimDisk); 3] = [&|_| {}, &overwrite(&manifest), &|disk: &SimDisk| {
        disk.remove(&manifest).unwrap()
    }];
    for lose in lost {
        let disk = without_catalog();
        lose(&disk);
        let (whole, report) = run(&disk, true);
        assert!(!whole && report.contains("--adopt"), "{report}");
        let (done, report) = run_adoption(&disk).unwrap();
        assert!(done && report.contains("rules, webhooks, keys"), "{report}");
        assert_adopted(&disk);
        assert_adopted(&disk.crash(Crash::KINDS[1]));
    }
}

#[test]
fn nothing_is_adopted_when_the_catalog_exists() {
    let disk = directory();
    let before = disk.files();
    let (done, report) = run_adoption(&disk).unwrap();
    assert!(!done && report.contains("nothing"), "{report}");
    assert_eq!(disk.files(), before);
    // They are not adopted twice.
    let disk = without_catalog();
    assert!(run_adoption(&disk).unwrap().0);
    let before = disk.files();
    assert!(!run_adoption(&disk).unwrap().0);
    assert_eq!(disk.files(), before);
}

/// A power cut at any operation: the next adoption completes the interrupted one.
#[test]
fn an_interrupted_adoption_is_repeated() {
    let disk = without_catalog();
    let operations = {
        let whole = fork(&disk);
        let before = whole.operations();
        run_adoption(&whole).unwrap();
        whole.operations() - before
    };
    for cut in 0..operations {
        let short = fork(&disk);
        short.stop_at(short.operations() + cut);
        let _ = run_adoption(&short);
        let short = short.crash(Crash::KINDS[1]);
        let (done, report) = run_adoption(&short).unwrap();
        assert!(done || report.contains("nothing"), "operation {cut}: {report}");
        assert_adopted(&short);
    }
}
