package spec

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"os"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
	"github.com/pmk-sched/pmk-sched/profiles"
)

// extenderEntry is one element of spec.extenders: an existing service at urlPrefix, or, without urlPrefix, an extender that
// pmk-sched deploys with the scheduler.
type extenderEntry struct {
	Name             string                 `yaml:"name"`
	URLPrefix        string                 `yaml:"urlPrefix"`
	FilterVerb       string                 `yaml:"filterVerb"`
	PrioritizeVerb   string                 `yaml:"prioritizeVerb"`
	PreemptVerb      string                 `yaml:"preemptVerb"`
	BindVerb         string                 `yaml:"bindVerb"`
	Weight           int64                  `yaml:"weight"`
	EnableHTTPS      *bool                  `yaml:"enableHTTPS"`
	TLSConfig        *extenderTLSEntry      `yaml:"tlsConfig"`
	HTTPTimeout      duration               `yaml:"httpTimeout"`
	NodeCacheCapable *bool                  `yaml:"nodeCacheCapable"`
	ManagedResources []managedResourceEntry `yaml:"managedResources"`
	Ignorable        *bool                  `yaml:"ignorable"`

	// The rest is valid without urlPrefix only.
	Image      string        `yaml:"image"`
	PullPolicy string        `yaml:"pullPolicy"`
	Policies   []policyEntry `yaml:"policies"`
	Replicas   autoInt       `yaml:"replicas"`
	Port       autoInt       `yaml:"port"`
	Sidecar    bool          `yaml:"sidecar"`

	NodeSelector map[string]string `yaml:"nodeSelector"`
}

// extenderTLSEntry names local files, relative to pmk-sched.yaml. Their content is stored in the cluster.
type extenderTLSEntry struct {
	Insecure   bool   `yaml:"insecure"`
	ServerName string `yaml:"serverName"`
	// CA is a file with certificates, or "auto": a CA that pmk-sched creates for an extender that it deploys.
	CA       string `yaml:"ca"`
	CertFile string `yaml:"certFile"`
	KeyFile  string `yaml:"keyFile"`
}

// caAuto is the value of tlsConfig.ca for a CA that pmk-sched creates.
const caAuto = "auto"

type managedResourceEntry struct {
	Name               string `yaml:"name"`
	IgnoredByScheduler bool   `yaml:"ignoredByScheduler"`
}

// policyEntry is one policy that a deployed extender serves, with its arguments as in the configuration of pmk-extender.
type policyEntry struct {
	Name   string    `yaml:"name"`
	Weight int64     `yaml:"weight"`
	Args   yaml.Node `yaml:"args"`
}

// duration is a length of time such as 500ms.
type duration time.Duration

// UnmarshalYAML reads a duration in Go's notation, above 0.
func (d *duration) UnmarshalYAML(node *yaml.Node) error {
	parsed, err := time.ParseDuration(node.Value)
	if err != nil || parsed <= 0 {
		return &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d: invalid duration %q: must be a value above 0 such as 500ms or 2s", node.Line, node.Value)}}
	}
	*d = duration(parsed)
	return nil
}

// isDeployed reports whether pmk-sched deploys the extender.
func (e extenderEntry) isDeployed() bool { return e.URLPrefix == "" }

// deployedExtenders returns the extenders that pmk-sched deploys.
func (d *document) deployedExtenders() []extenderEntry {
	var deployed []extenderEntry
	for _, e := range d.Spec.Extenders {
		if e.isDeployed() {
			deployed = append(deployed, e)
		}
	}
	return deployed
}

// calledExtenders returns the extenders that exist already, and the client certificates for some of them, by name. It reads
// the files that the entries name.
func (d *document) calledExtenders() ([]profiles.Extender, map[string]manifest.ClientCertificate, error) {
	var called []profiles.Extender
	clients := map[string]manifest.ClientCertificate{}
	for _, e := range d.Spec.Extenders {
		if e.isDeployed() {
			continue
		}
		if len(e.Policies)+len(e.NodeSelector) > 0 || e.Image != "" || e.PullPolicy != "" || e.Replicas != 0 || e.Port != 0 || e.Sidecar {
			return nil, nil, problem.Invalidf("remove urlPrefix to have pmk-sched deploy the extender, or remove the other fields",
				"extender %s: urlPrefix, which names an existing extender, excludes image, pullPolicy, policies, replicas, port, sidecar and nodeSelector", e.Name)
		}
		extender := e.extender()
		if err := e.readFiles(d, &extender, clients); err != nil {
			return nil, nil, err
		}
		called = append(called, extender)
	}
	if len(clients) == 0 {
		clients = nil
	}
	return called, clients, nil
}

// nodeExtenders returns the calledExtenders for a scheduler that is a static pod, which cannot mount a Secret.
func (d *document) nodeExtenders() ([]profiles.Extender, error) {
	called, clients, err := d.calledExtenders()
	if err == nil && len(clients) > 0 {
		err = problem.Invalidf("remove certFile and keyFile, or use a --config that names files on the node",
			"the default scheduler is a static pod and cannot mount a client certificate for an extender")
	}
	return called, err
}

// checkExtenders checks the names of the extenders, which become those of files and objects.
func (d *document) checkExtenders() error {
	seen := map[string]bool{}
	for i, e := range d.Spec.Extenders {
		if problems := validation.IsDNS1123Label(e.Name); len(problems) > 0 {
			return problem.Invalidf("use lower-case letters, digits and '-'", "spec.extenders[%d]: the name %q is not a DNS label: %s", i, e.Name, strings.Join(problems, "; "))
		}
		if seen[e.Name] {
			return problem.Invalidf("", "spec.extenders: duplicate name %q", e.Name)
		}
		seen[e.Name] = true
	}
	return nil
}

// extender returns the entry as the scheduler's configuration has it, without the files that it names.
func (e extenderEntry) extender() profiles.Extender {
	made := profiles.Extender{
		Name: e.Name, URLPrefix: e.URLPrefix,
		FilterVerb: e.FilterVerb, PrioritizeVerb: e.PrioritizeVerb, PreemptVerb: e.PreemptVerb, BindVerb: e.BindVerb,
		Weight: e.Weight, EnableHTTPS: strings.HasPrefix(e.URLPrefix, "https://"), HTTPTimeout: time.Duration(e.HTTPTimeout),
		NodeCacheCapable: e.NodeCacheCapable, Ignorable: e.Ignorable,
	}
	if e.EnableHTTPS != nil {
		made.EnableHTTPS = *e.EnableHTTPS
	}
	if t := e.TLSConfig; t != nil {
		made.TLS = &profiles.ExtenderTLS{Insecure: t.Insecure, ServerName: t.ServerName}
	}
	for _, r := range e.ManagedResources {
		made.ManagedResources = append(made.ManagedResources, profiles.ManagedResource{Name: r.Name, IgnoredByScheduler: r.IgnoredByScheduler})
	}
	return made
}

// readFiles reads what tlsConfig names: the CA goes into the configuration, certificate and key into a Secret that the
// scheduler's pod mounts.
func (e extenderEntry) readFiles(d *document, to *profiles.Extender, clients map[string]manifest.ClientCertificate) error {
	t := e.TLSConfig
	if t == nil {
		return nil
	}
	var err error
	switch t.CA {
	case "":
	case caAuto:
		return problem.Invalidf("name a file with the certificates of its CA", "extender %s: tlsConfig.ca: auto is valid for an extender that pmk-sched deploys only", e.Name)
	default:
		if to.TLS.CAData, err = e.readPEM(d, "ca", t.CA, "CERTIFICATE"); err != nil {
			return err
		}
	}
	if t.CertFile == "" && t.KeyFile == "" {
		return nil
	}
	if t.CertFile == "" || t.KeyFile == "" {
		return problem.Invalidf("", "extender %s: tlsConfig.certFile and tlsConfig.keyFile are required together", e.Name)
	}
	var client manifest.ClientCertificate
	if client.Cert, err = e.readPEM(d, "certFile", t.CertFile, "CERTIFICATE"); err != nil {
		return err
	}
	if client.Key, err = e.readPEM(d, "keyFile", t.KeyFile, "PRIVATE KEY"); err != nil {
		return err
	}
	clients[e.Name] = client
	to.TLS.CertFile, to.TLS.KeyFile = manifest.ExtenderClientPaths(e.Name)
	return nil
}

// readPEM reads a file and checks that it starts with a PEM block of the given kind.
func (e extenderEntry) readPEM(d *document, field, name, kind string) ([]byte, error) {
	name = d.path(name)
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, problem.Invalidf("", "extender %s: read tlsConfig.%s: %w", e.Name, field, err)
	}
	block, _ := pem.Decode(bytes.TrimSpace(text))
	if block == nil || !strings.HasSuffix(block.Type, kind) {
		return nil, problem.Invalidf("", "extender %s: tlsConfig.%s: %s does not contain a PEM-encoded %s", e.Name, field, name, strings.ToLower(kind))
	}
	return text, nil
}
