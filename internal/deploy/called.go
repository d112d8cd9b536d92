package deploy

import (
	"cmp"
	"strings"
	"time"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
	"github.com/pmk-sched/pmk-sched/profiles"
)

// CalledExtenders returns the extenders that exist already, and client certificates for extenders,
// by name. The request contains the contents of the files that the extenders name.
func CalledExtenders(r *v1alpha1.CustomScheduler) ([]profiles.Extender, map[string]manifest.ClientCertificate, error) {
	var called []profiles.Extender
	var clients map[string]manifest.ClientCertificate
	for _, e := range r.Spec.Extenders {
		if e.IsDeployed() {
			continue
		}
		if len(e.Policies)+len(e.NodeSelector) > 0 || e.Image != "" || e.PullPolicy != "" || e.Replicas != 0 || e.Port != 0 ||
			e.Sidecar {
			return nil, nil,
				problem.Invalidf("remove urlPrefix to have pmk-sched deploy the extender, or remove the other fields",
					"extender %s: urlPrefix, which names an existing extender, excludes image, pullPolicy, policies, replicas, port, "+
						"sidecar and nodeSelector", e.Name)
		}
		extender := CallOf(e)
		if t := e.TLSConfig; t != nil {
			extender.TLS.CAData = t.CAData
			if t.CertData != nil {
				if clients == nil {
					clients = map[string]manifest.ClientCertificate{}
				}
				clients[e.Name] = manifest.ClientCertificate{Cert: t.CertData, Key: t.KeyData}
				extender.TLS.CertFile, extender.TLS.KeyFile = manifest.ExtenderClientPaths(e.Name)
			}
		}
		called = append(called, extender)
	}
	return called, clients, nil
}

// Verbs of pmk-extender, which are also their paths.
const (
	VerbFilter     = "filter"
	VerbPrioritize = "prioritize"
	VerbPreempt    = "preempt"
	VerbBind       = "bind"
)

// CallOf returns the entry in the form of the scheduler's configuration, without certificates and,
// if pmk-sched deploys the extender, without its address. The scheduler writes a slash before a
// verb.
func CallOf(e v1alpha1.Extender) profiles.Extender {
	verb := func(v string) string { return strings.TrimLeft(v, "/") }
	made := profiles.Extender{
		Name: e.Name, URLPrefix: e.URLPrefix, FilterVerb: verb(e.FilterVerb), PrioritizeVerb: verb(e.PrioritizeVerb),
		PreemptVerb: verb(e.PreemptVerb), BindVerb: verb(e.BindVerb),
		Weight: e.Weight, EnableHTTPS: strings.HasPrefix(e.URLPrefix, "https://"), HTTPTimeout: time.Duration(e.HTTPTimeout),
		NodeCacheCapable: e.NodeCacheCapable, Ignorable: e.Ignorable,
	}
	for _, r := range e.ManagedResources {
		made.ManagedResources = append(made.ManagedResources,
			profiles.ManagedResource{Name: r.Name, IgnoredByScheduler: r.IgnoredByScheduler})
	}
	if e.IsDeployed() {
		return ofPmkExtender(made)
	}
	if e.EnableHTTPS != nil {
		made.EnableHTTPS = *e.EnableHTTPS
	}
	if t := e.TLSConfig; t != nil {
		made.TLS = &profiles.ExtenderTLS{Insecure: t.Insecure, ServerName: t.ServerName}
	}
	return made
}

// ofPmkExtender returns a call with pmk-extender's defaults. It has a cache of nodes.
func ofPmkExtender(call profiles.Extender) profiles.Extender {
	if call.FilterVerb+call.PrioritizeVerb+call.PreemptVerb+call.BindVerb == "" {
		call.FilterVerb, call.PrioritizeVerb = VerbFilter, VerbPrioritize
	}
	if call.PrioritizeVerb != "" {
		call.Weight = cmp.Or(call.Weight, 1)
	}
	if call.NodeCacheCapable == nil {
		cached := true
		call.NodeCacheCapable = &cached
	}
	return call
}
