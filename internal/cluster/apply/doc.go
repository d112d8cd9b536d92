// Package apply applies objects to a cluster by server-side apply, waits until they are stable, and
// deletes them.
//
// A [Client] first dry-runs the changes, rejects objects that pmk-sched does not manage, and then
// changes only objects that differ, in dependency order. It retries while an API server that it has
// reached is unavailable. Every deployed state is saved as a [Revision] before the cluster is
// changed. A [Client.Lock] prevents two runs for the same scheduler at once.
package apply
