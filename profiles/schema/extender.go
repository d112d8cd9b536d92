package schema

import (
	"time"
)

// DefaultExtenderTimeout is the default timeout of a call to an extender. The scheduler's own
// default is 5 s (pkg/scheduler/extender.go), which an unresponsive extender would cost every pod.
const DefaultExtenderTimeout = time.Second

// Extender is an HTTP service that the scheduler calls for every pod: one element of extenders in a
// configuration.
type Extender struct {
	// Name is used in messages, and in a comment of the rendered configuration.
	Name string
	// URLPrefix is the address without the verb: https://host:port/path.
	URLPrefix string
	// Verbs are appended to URLPrefix. An empty one is not called; at least one is required.
	FilterVerb, PrioritizeVerb, PreemptVerb, BindVerb string
	// Weight multiplies the scores (0 to 10) that prioritize returns. It is above 0 if there is a
	// PrioritizeVerb.
	Weight int64
	// EnableHTTPS makes the scheduler use TLS, configured by TLS. Without a CA it would accept any
	// certificate, which is rejected unless TLS.Insecure is set.
	EnableHTTPS bool
	TLS         *ExtenderTLS
	// HTTPTimeout is each call's timeout. Defaults to [DefaultExtenderTimeout].
	HTTPTimeout time.Duration
	// NodeCacheCapable means that the extender caches nodes, so that the scheduler sends only their
	// names. Nil means false, as in a scheduler's configuration: a handler that reads the nodes of a
	// request would find none.
	NodeCacheCapable *bool
	// ManagedResources limit the extender to pods that request one of them. If empty, it is called
	// for every pod.
	ManagedResources []ManagedResource
	// Ignorable means that pods are scheduled while the extender is unavailable. It is required:
	// neither value is a safe default.
	Ignorable *bool
}

// ExtenderTLS configures how the scheduler and an extender authenticate each other.
type ExtenderTLS struct {
	// Insecure accepts any certificate.
	Insecure bool
	// ServerName is the expected name in the certificate, also sent as SNI. Empty means the URL's
	// host.
	ServerName string
	// CAFile is the path of the CA certificates, as the scheduler's process sees it; CAData are the
	// certificates, PEM. Set one of them.
	CAFile string
	CAData []byte
	// CertFile and KeyFile are the paths of the client certificate and key, as the scheduler's
	// process sees them. Set both or none.
	CertFile, KeyFile string
}

// ManagedResource is an extended resource that an extender manages.
type ManagedResource struct {
	// Name is the resource's name, for example example.com/gpu.
	Name string
	// IgnoredByScheduler means that the scheduler does not check whether the resource fits.
	IgnoredByScheduler bool
}
