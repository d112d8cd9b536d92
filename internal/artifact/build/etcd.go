package build

// EtcdModule is the Go module of etcd, and its main package. EtcdVersion works with the API servers of all supported releases.
const (
	EtcdModule  = "go.etcd.io/etcd/server/v3"
	EtcdVersion = "v3.6.8"
)
