//! Chapter 5: raw rows, filters, paging, groups, downsampling.

mod aggregations;
mod answers;
mod budget;
mod columns;
mod compare_and_top;
mod cursor;
mod downsampling;
mod expressions;
mod fields;
mod fill;
mod filters;
mod grouped;
mod immediate;
mod layout;
mod max_points;
mod metadata_filter;
mod paging;
mod raw;
mod statistics;
mod steps;
mod timezone;
mod units;
mod value_filters;
mod volume;
