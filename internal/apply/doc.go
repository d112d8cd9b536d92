// Package apply brings objects into a cluster by server-side apply, waits until they work, and takes them away again.
//
// A [Client] first asks the API server what would change (dry-run), refuses what is not ours, and then changes only what differs, in the order
// in which objects depend on each other. It tries again while an API server that was there is away. Every deployed state is kept as a
// [Revision] that is written before the cluster is touched, and a [Client.Lock] keeps two runs for the same scheduler apart.
package apply
