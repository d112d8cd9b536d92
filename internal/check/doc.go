// Package check asks questions of a cluster and reports the answers as data.
//
// A [Check] is a question; [RunAll] asks a list of them and tells an observer each [Outcome]. [Preflight] makes the questions to ask before
// anything is deployed; [Verify] proves with a pod of its own that a deployed scheduler schedules.
package check
