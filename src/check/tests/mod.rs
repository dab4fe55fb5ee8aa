//! `tidewatch check` over a directory of every kind of file.

mod adopt;
mod carried;
mod damage;
mod deleted_points;
mod directory;
mod missing_files;
mod older_formats;
