// Package matrix tests pmk-sched on real control-plane nodes of many releases, one lab at a time:
// it starts the lab, runs detect, builds, deploys and verifies the scheduler of the release, and
// fails if uninstall leaves anything. It needs the build tag labs.
package matrix
