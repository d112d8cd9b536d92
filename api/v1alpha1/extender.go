package v1alpha1

// Extender is an extender that the scheduler calls: an existing service at URLPrefix, or, without
// URLPrefix, an extender that pmk-sched deploys with the scheduler.
type Extender struct {
	// Name is a DNS label.
	Name string `json:"name" yaml:"name"`
	// URLPrefix is the address of an existing extender.
	URLPrefix string `json:"urlPrefix,omitempty" yaml:"urlPrefix"`
	// FilterVerb is the path below the address that refuses nodes. Without any verb, an extender that
	// pmk-sched deploys serves filter and prioritize.
	FilterVerb string `json:"filterVerb,omitempty" yaml:"filterVerb"`
	// PrioritizeVerb is the path that scores nodes.
	PrioritizeVerb string `json:"prioritizeVerb,omitempty" yaml:"prioritizeVerb"`
	// PreemptVerb is the path that selects preemption victims.
	PreemptVerb string `json:"preemptVerb,omitempty" yaml:"preemptVerb"`
	// BindVerb is the path that binds pods.
	BindVerb string `json:"bindVerb,omitempty" yaml:"bindVerb"`
	// Weight multiplies the extender's scores.
	Weight int64 `json:"weight,omitempty" yaml:"weight"`
	// EnableHTTPS is true by default if URLPrefix begins with https://.
	EnableHTTPS *bool `json:"enableHTTPS,omitempty" yaml:"enableHTTPS"`
	// TLSConfig holds the certificates for calls.
	TLSConfig *TLSConfig `json:"tlsConfig,omitempty" yaml:"tlsConfig"`
	// HTTPTimeout is the timeout for a call.
	HTTPTimeout Duration `json:"httpTimeout,omitempty" yaml:"httpTimeout"`
	// NodeCacheCapable sends node names instead of nodes. The default is false with URLPrefix, as in
	// kube-scheduler.
	NodeCacheCapable *bool `json:"nodeCacheCapable,omitempty" yaml:"nodeCacheCapable"`
	// ManagedResources limit the calls to pods that request one of them.
	ManagedResources []ManagedResource `json:"managedResources,omitempty" yaml:"managedResources"`
	// Ignorable schedules pods while the extender is unavailable.
	Ignorable *bool `json:"ignorable,omitempty" yaml:"ignorable"`

	// The fields below are valid without URLPrefix only.

	// Image of the extender. The default is the image that `build extender` makes.
	Image string `json:"image,omitempty" yaml:"image"`
	// PullPolicy is IfNotPresent, Always or Never. The default is the cluster's default.
	PullPolicy string `json:"pullPolicy,omitempty" yaml:"pullPolicy" jsonschema:"enum=IfNotPresent,enum=Always,enum=Never"`
	// Policies are the policies that the extender serves.
	Policies []Policy `json:"policies,omitempty" yaml:"policies"`
	// Replicas is a number or auto: 2.
	Replicas AutoInt `json:"replicas,omitempty" yaml:"replicas"`
	// Port for a sidecar, on the loopback address.
	Port AutoInt `json:"port,omitempty" yaml:"port"`
	// Sidecar runs the extender in the scheduler's pod.
	Sidecar bool `json:"sidecar,omitempty" yaml:"sidecar"`
	// NodeSelector selects nodes for the extender's pods. The default is any node.
	NodeSelector map[string]string `json:"nodeSelector,omitempty" yaml:"nodeSelector"`

	// Deployed is set in a recorded request: the extender that pmk-sched deployed.
	Deployed *DeployedExtender `json:"deployed,omitempty" yaml:"-" jsonschema:"-"`
}

// DeployedExtender is an extender that pmk-sched deployed, as a scheduler calls it.
type DeployedExtender struct {
	// Added is set for an extender that `extender deploy` added to the scheduler. It stays when the
	// scheduler is deployed again from a file that does not have it.
	Added bool `json:"added,omitempty"`
	// URLPrefix is the Service's address. ServerName and CAData verify its certificate.
	URLPrefix  string `json:"urlPrefix,omitempty"`
	ServerName string `json:"serverName,omitempty"`
	CAData     []byte `json:"caData,omitempty"`
	// ClientSecret is the Secret with the scheduler's client certificate, which its pods mount.
	ClientSecret string `json:"clientSecret,omitempty"`
	// Image, with its digest, Port and Rules are a sidecar's: Rules are the permissions that its
	// policies need.
	Image string  `json:"image,omitempty"`
	Port  AutoInt `json:"port,omitempty"`
	Rules Rules   `json:"rules,omitempty"`
}

// IsDeployed reports whether pmk-sched deploys the extender.
func (e Extender) IsDeployed() bool { return e.URLPrefix == "" }

// CAAuto is the [TLSConfig.CA] value for a certificate authority that pmk-sched creates.
const CAAuto = "auto"

// TLSConfig names files, relative to pmk-sched.yaml, whose content is stored in the cluster.
type TLSConfig struct {
	// Insecure accepts any certificate from the extender.
	Insecure bool `json:"insecure,omitempty" yaml:"insecure"`
	// ServerName is the name in the extender's certificate if it is not the host in the address.
	ServerName string `json:"serverName,omitempty" yaml:"serverName"`
	// CA is a file with certificates, or auto: a certificate authority that pmk-sched creates for an
	// extender that it deploys.
	CA string `json:"ca,omitempty" yaml:"ca" file:"CAData"`
	// CertFile is a file with the scheduler's client certificate.
	CertFile string `json:"certFile,omitempty" yaml:"certFile" file:"CertData" object:"files are not read in the cluster"`
	// KeyFile is a file with the client certificate's private key.
	KeyFile string `json:"keyFile,omitempty" yaml:"keyFile" file:"KeyData" object:"files are not read in the cluster"`

	// CAData, CertData and KeyData are the files' contents in a recorded request. Its JSON never
	// contains KeyData.
	CAData   []byte `json:"caData,omitempty" yaml:"-" jsonschema:"-"`
	CertData []byte `json:"certData,omitempty" yaml:"-" jsonschema:"-"`
	KeyData  []byte `json:"-" yaml:"-" jsonschema:"-"`
}

// String does not contain the key.
func (t *TLSConfig) String() string { return "TLS configuration" }

// GoString is like String, so that %#v does not print the key.
func (t *TLSConfig) GoString() string { return t.String() }

// ManagedResource is a resource. Pods that request it are sent to the extender.
type ManagedResource struct {
	// Name of the resource, such as example.com/device.
	Name string `json:"name" yaml:"name"`
	// IgnoredByScheduler leaves the resource to the extender.
	IgnoredByScheduler bool `json:"ignoredByScheduler,omitempty" yaml:"ignoredByScheduler"`
}

// Policy is a policy that a deployed extender serves.
type Policy struct {
	// Name of a bundled policy, in lower case.
	Name string `json:"name" yaml:"name"`
	// Weight of the policy's scores.
	Weight int64 `json:"weight,omitempty" yaml:"weight"`
	// Args are the policy's arguments: a mapping.
	Args Document `json:"args,omitempty" yaml:"args"`
}
