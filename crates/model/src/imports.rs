//! Imports: modules found on a search path, their models and programs under full dotted names.

use crate::load::LoadOptions;
use crate::problem::Problems;
use crate::read::Document;

pub(crate) fn resolve(_document: &mut Document, _options: &LoadOptions, _problems: &mut Problems) {}
