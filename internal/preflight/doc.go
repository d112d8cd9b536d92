// Package preflight asks questions of a cluster and reports the answers as data.
//
// A [Check] is a question; [RunAll] asks a list of them and tells an observer each [Outcome]. [Checks] makes those to ask before
// a scheduler is deployed.
package preflight
