// Package snapshot defines the objects of a cluster that a kube-scheduler reads: their kinds and
// their fields.
//
// [Kinds] lists the kinds. [Kind.Strip] removes everything else from an object, above all environment variables, commands, volumes that a
// scheduler does not read, and annotations. An [Anonymizer] replaces names, so that the references between objects still match. [Role]
// lists the permissions that reading the objects needs. A [Header] describes a snapshot; package archive reads and writes the file.
//
// The package does no I/O.
package snapshot
