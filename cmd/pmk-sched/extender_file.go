package main

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/pmk-sched/pmk-sched/internal/manifest"
	"github.com/pmk-sched/pmk-sched/profiles"
)

// extenderEntry is one element of spec.extenders: a service that is there already,
// at urlPrefix; or, without urlPrefix, one that pmk-sched deploys with the
// scheduler.
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

	// What pmk-sched deploys: only without urlPrefix.
	Image      string        `yaml:"image"`
	PullPolicy string        `yaml:"pullPolicy"`
	Policies   []policyEntry `yaml:"policies"`
	Replicas   autoInt       `yaml:"replicas"`
	Port       autoInt       `yaml:"port"`
	Sidecar    bool          `yaml:"sidecar"`
}

// extenderTLSEntry names files of the person's, relative to pmk-sched.yaml: what
// is in them goes into the cluster.
type extenderTLSEntry struct {
	Insecure   bool   `yaml:"insecure"`
	ServerName string `yaml:"serverName"`
	// CA is a file with certificates, or "auto": a CA that pmk-sched makes for an
	// extender that it deploys.
	CA       string `yaml:"ca"`
	CertFile string `yaml:"certFile"`
	KeyFile  string `yaml:"keyFile"`
}

// caAuto is the value of tlsConfig.ca for a CA that pmk-sched makes.
const caAuto = "auto"

type managedResourceEntry struct {
	Name               string `yaml:"name"`
	IgnoredByScheduler bool   `yaml:"ignoredByScheduler"`
}

// policyEntry is one policy that a deployed extender serves, with its arguments as
// pmk-extender's --config has them.
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
		return &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d: %q is no duration above 0, such as 500ms or 2s", node.Line, node.Value)}}
	}
	*d = duration(parsed)
	return nil
}

// deployed says whether pmk-sched deploys the extender.
func (e extenderEntry) deployed() bool { return e.URLPrefix == "" }

// deployedExtenders are those that pmk-sched deploys with the scheduler.
func (f *customScheduler) deployedExtenders() []extenderEntry {
	var deployed []extenderEntry
	for _, e := range f.Spec.Extenders {
		if e.deployed() {
			deployed = append(deployed, e)
		}
	}
	return deployed
}

// calledExtenders are those that are there already, and the certificates that the
// scheduler shows to some of them, by name. Files that the entries name are read.
func (f *customScheduler) calledExtenders() ([]profiles.Extender, map[string]manifest.ClientCertificate, error) {
	var called []profiles.Extender
	clients := map[string]manifest.ClientCertificate{}
	for _, e := range f.Spec.Extenders {
		if e.deployed() {
			continue
		}
		if len(e.Policies) > 0 || e.Image != "" || e.PullPolicy != "" || e.Replicas != 0 || e.Port != 0 || e.Sidecar {
			return nil, nil, usagef("leave urlPrefix out to have it deployed, or the others for one that is there",
				"extender %s has a urlPrefix, so it is there already; image, pullPolicy, policies, replicas, port and sidecar are for one that is deployed", e.Name)
		}
		extender := e.extender()
		if err := e.readFiles(f.dir, &extender, clients); err != nil {
			return nil, nil, err
		}
		called = append(called, extender)
	}
	if len(clients) == 0 {
		clients = nil
	}
	return called, clients, nil
}

// extendersOfNode are those of calledExtenders, for a scheduler that is a static
// pod: it mounts no Secret.
func (f *customScheduler) extendersOfNode() ([]profiles.Extender, error) {
	called, clients, err := f.calledExtenders()
	if err == nil && len(clients) > 0 {
		err = usagef("leave certFile and keyFile out, or give a --config that names files of the node",
			"the default scheduler is a static pod, to which no certificate for an extender can be given")
	}
	return called, err
}

// checkExtenders refuses extenders that cannot be told apart: their names become
// those of files and objects.
func (f *customScheduler) checkExtenders() error {
	seen := map[string]bool{}
	for i, e := range f.Spec.Extenders {
		if problems := validation.IsDNS1123Label(e.Name); len(problems) > 0 {
			return usagef("use lower-case letters, digits and '-'", "spec.extenders[%d]: the name %q is not a DNS label: %s", i, e.Name, strings.Join(problems, "; "))
		}
		if seen[e.Name] {
			return usagef("give each a name of its own", "spec.extenders: two are named %s", e.Name)
		}
		seen[e.Name] = true
	}
	return nil
}

// extender is what the entry says without files.
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

// readFiles reads what tlsConfig names: the authorities go into the configuration,
// certificate and key into a Secret that the scheduler's pod mounts.
func (e extenderEntry) readFiles(dir string, to *profiles.Extender, clients map[string]manifest.ClientCertificate) error {
	t := e.TLSConfig
	if t == nil {
		return nil
	}
	var err error
	switch t.CA {
	case "":
	case caAuto:
		return usagef("name the file with the certificates that its own is signed by", "extender %s: tlsConfig.ca is auto, which is for one that pmk-sched deploys", e.Name)
	default:
		if to.TLS.CAData, err = e.readPEM(dir, "ca", t.CA, "CERTIFICATE"); err != nil {
			return err
		}
	}
	if t.CertFile == "" && t.KeyFile == "" {
		return nil
	}
	if t.CertFile == "" || t.KeyFile == "" {
		return usagef("give both", "extender %s: tlsConfig has one of certFile and keyFile", e.Name)
	}
	var client manifest.ClientCertificate
	if client.Cert, err = e.readPEM(dir, "certFile", t.CertFile, "CERTIFICATE"); err != nil {
		return err
	}
	if client.Key, err = e.readPEM(dir, "keyFile", t.KeyFile, "PRIVATE KEY"); err != nil {
		return err
	}
	clients[e.Name] = client
	to.TLS.CertFile, to.TLS.KeyFile = manifest.ExtenderClientPaths(e.Name)
	return nil
}

// readPEM reads a file that has to hold a block of a kind.
func (e extenderEntry) readPEM(dir, field, name, kind string) ([]byte, error) {
	if !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, usagef("", "extender %s: read tlsConfig.%s: %s", e.Name, field, err)
	}
	block, _ := pem.Decode(bytes.TrimSpace(text))
	if block == nil || !strings.HasSuffix(block.Type, kind) {
		return nil, usagef("", "extender %s: tlsConfig.%s: %s holds no %s as PEM", e.Name, field, name, strings.ToLower(kind))
	}
	return text, nil
}
