// Package archive implements the file format of snapshots.
//
// A snapshot is a gzip-compressed tar archive. The first entry is header.json, a [snapshot.Header].
// One entry for each of its resources follows, in the same order: objects/NAME.jsonl with NAME =
// RESOURCE.VERSION or RESOURCE.VERSION.GROUP, such as objects/replicasets.v1.apps.jsonl. It
// contains one object a line, as JSON with sorted keys, ordered by namespace/name; both orders are
// of bytes. Modes, owners and times of the entries are constant, so that two snapshots of the same
// state differ in the header only.
//
// A file is input that others may have made: [Reader] accepts nothing that [Write] does not write, has limits, creates no file, and returns
// only the fields that schedulers read.
package archive
