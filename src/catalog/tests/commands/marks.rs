//! Random commands about silences and annotations.

use super::super::super::Command;
use super::super::alerts::{annotation, silence};
use super::super::id;
use super::CommandGenerator;
use crate::clock::DAY_NS;

impl CommandGenerator {
    pub(super) fn attempt_at_silences(&mut self) -> Option<Command> {
        if self.random.below(3) == 0 {
            let silence_id = self.random.pick(&self.silences)?;
            return Some(Command::SilenceDeleted { silence_id });
        }
        let organization_id = self.random.pick(&self.organizations)?;
        let (bucket_id, rule_id) = (self.random.pick(&self.buckets)?, self.random.pick(&self.rules)?);
        self.made += 1;
        self.silences.push(id(self.made));
        let created_at_ns = self.made as i64 * DAY_NS;
        let mut silence = silence(self.made, organization_id, created_at_ns);
        // Most end soon, so that later ones remove them.
        silence.until_ns = created_at_ns + self.random.below(20) as i64 * DAY_NS;
        match self.random.below(3) {
            0 => {}
            1 => (silence.bucket_id, silence.bucket_ids) = (Some(bucket_id), vec![bucket_id]),
            _ => (silence.alert_ids, silence.bucket_ids) = (Some(vec![rule_id]), vec![bucket_id]),
        }
        Some(Command::SilenceCreated { silence })
    }

    pub(super) fn attempt_at_annotations(&mut self) -> Option<Command> {
        self.made += 1;
        let (new, at_ns) = (id(self.made), self.made as i64 * DAY_NS);
        let (bucket_id, source_id) = (self.random.pick(&self.buckets)?, self.random.pick(&self.sources));
        let mut made = annotation(self.made, bucket_id, at_ns);
        made.settings.source_id = source_id.filter(|_| self.random.below(2) == 0);
        Some(match self.random.below(4) {
            0 => Command::AnnotationUpdated {
                annotation_id: self.random.pick(&self.annotations)?,
                settings: made.settings,
                at_ns,
            },
            1 => Command::AnnotationDeleted {
                annotation_id: self.random.pick(&self.annotations)?,
            },
            _ => {
                self.annotations.push(new);
                Command::AnnotationCreated { annotation: made }
            }
        })
    }
}
