package validate

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/profiles/node"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
	"github.com/pmk-sched/pmk-sched/versions"
)

// longTimeout is the scheduler's default timeout; there is a warning about longer ones.
const longTimeout = 5 * time.Second

// severity is a finding's severity.
type severity int

const (
	// warning marks settings that work as configured, but are rarely intended.
	warning severity = iota
	// wrong marks settings that the scheduler accepts, but that do not work as configured. It is a
	// warning in a source, which may have been in use for years, and an error otherwise.
	wrong
	// refused marks settings with which the scheduler does not start.
	refused
)

// checkedExtender is an extender with defaults; node is its element in the source, nil for an
// extender of the request.
type checkedExtender struct {
	schema.Extender
	what string
	node *yaml.Node
}

func toCheck(e schema.Extender) checkedExtender {
	what := "extender " + cmp.Or(e.Name, e.URLPrefix, "without a name")
	return checkedExtender{Extender: e.WithDefaults(), what: what}
}

// at returns a field's key, or the extender if the field is missing.
func (e checkedExtender) at(field string) *yaml.Node {
	if key, _ := node.Lookup(e.node, field); key != nil {
		return key
	}
	return e.node
}

func (e checkedExtender) tls() schema.ExtenderTLS {
	if e.TLS == nil {
		return schema.ExtenderTLS{}
	}
	return *e.TLS
}

func (e checkedExtender) hasCA() bool { return e.tls().CAFile != "" || len(e.tls().CAData) > 0 }

// ExtenderFinding is a problem or warning about an extender.
type ExtenderFinding struct {
	severity severity
	added    bool
	Node     *yaml.Node
	// Message and Try are as in a problem.
	Message, Try string
}

// Refuses reports whether the extender must not be deployed.
func (f ExtenderFinding) Refuses() bool {
	return f.severity == refused || f.severity == wrong && f.added
}

// starts reports whether a scheduler starts with the extender.
func (f ExtenderFinding) starts() bool { return f.severity != refused }

// extenderCheck checks all extenders of one scheduler. The limits follow
// pkg/scheduler/apis/config/validation/validation.go and pkg/scheduler/extender.go.
type extenderCheck struct {
	release versions.Release
	rules   versions.Rules
	all     []checkedExtender
	// fit are the pluginConfig elements for NodeResourcesFit.
	fit      []*yaml.Node
	findings []ExtenderFinding
}

// Extenders checks a document's extenders, and those to be added to it.
func Extenders(release versions.Release, root *yaml.Node, added []schema.Extender) []ExtenderFinding {
	x := extenderCheck{release: release, rules: release.Rules()}
	for i, e := range node.Items(root, "extenders") {
		x.all = append(x.all, checkedExtender{Extender: schema.ReadExtender(e), what: fmt.Sprintf("extenders[%d]", i),
			node: e})
	}
	for _, e := range added {
		x.all = append(x.all, toCheck(e))
	}
	for _, p := range node.Items(root, "profiles") {
		if fit := schema.ConfigOf(p, schema.ResourcesFit); fit != nil {
			x.fit = append(x.fit, fit)
		}
	}
	x.run()
	return x.findings
}

func (x *extenderCheck) add(s severity, e checkedExtender, field, try, format string, args ...any) {
	x.findings = append(x.findings,
		ExtenderFinding{s, e.node == nil, e.at(field), e.what + ": " + fmt.Sprintf(format, args...), try})
}

func (x *extenderCheck) run() {
	var binder string
	for i, e := range x.all {
		for _, judge := range []func(checkedExtender){x.verbs, x.address, x.identity, x.timeout, x.cache, x.ignorable} {
			judge(e)
		}
		if e.BindVerb != "" && binder != "" {
			x.add(refused, e, "bindVerb", "keep bindVerb in one extender",
				"it has a bindVerb, and so does %s: only one extender can bind", binder)
		}
		if e.BindVerb != "" {
			binder = cmp.Or(binder, e.what)
		}
		same := slices.IndexFunc(x.all[:i], func(other checkedExtender) bool { return other.URLPrefix == e.URLPrefix })
		if same >= 0 && e.URLPrefix != "" && x.all[same].FilterVerb == e.FilterVerb &&
			x.all[same].PrioritizeVerb == e.PrioritizeVerb {
			x.add(warning, e, "urlPrefix", "remove one of them", "%s is called twice for every pod: %s is the same", e.URLPrefix,
				x.all[same].what)
		}
	}
	x.resources()
}

func (x *extenderCheck) verbs(e checkedExtender) {
	switch {
	case e.FilterVerb == "" && e.PrioritizeVerb == "" && e.PreemptVerb == "" && e.BindVerb == "":
		x.add(wrong, e, "", "set one of filterVerb, prioritizeVerb, preemptVerb and bindVerb",
			"it has no verb, so it is never called")
	case e.PrioritizeVerb != "" && e.Weight <= 0:
		x.add(refused, e, "weight", "set a weight of at least 1", "it has a prioritizeVerb, but no weight above 0")
	case e.PrioritizeVerb == "" && e.Weight != 0:
		x.add(warning, e, "weight", "set prioritizeVerb, or remove the weight",
			"the weight %d has no effect without a prioritizeVerb", e.Weight)
	}
	for _, v := range []struct{ field, verb string }{{"filterVerb", e.FilterVerb}, {"prioritizeVerb", e.PrioritizeVerb},
		{"preemptVerb", e.PreemptVerb}, {"bindVerb", e.BindVerb}} {
		if strings.HasPrefix(v.verb, "/") {
			x.add(warning, e, v.field, "remove the slash at the beginning",
				"the scheduler calls %s/%s: many servers do not serve a path with two slashes, or redirect it, which can lose the "+
					"request", strings.TrimRight(e.URLPrefix, "/"), v.verb)
		}
	}
	if e.BindVerb != "" && len(e.ManagedResources) == 0 {
		x.add(warning, e, "bindVerb", "list the resources of its pods in managedResources",
			"it has a bindVerb and no managedResources, so it binds every pod instead of the bind plugins")
	}
}

// address checks the URL. It alone determines whether the scheduler uses TLS; enableHTTPS without a
// CA only disables certificate verification.
func (x *extenderCheck) address(e checkedExtender) {
	parsed, err := url.Parse(e.URLPrefix)
	switch {
	case err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https":
		x.add(wrong, e, "urlPrefix", "use http://HOST:PORT/PATH or https://HOST:PORT/PATH", "invalid urlPrefix %q",
			e.URLPrefix)
	case parsed.RawQuery != "" || parsed.Fragment != "" || parsed.User != nil:
		x.add(wrong, e, "urlPrefix", "remove user, query and fragment", "invalid urlPrefix %q: the verb is appended to it",
			e.URLPrefix)
	case e.EnableHTTPS && parsed.Scheme == "http":
		x.add(wrong, e, "enableHTTPS", "use https:// in urlPrefix, or remove enableHTTPS",
			"nothing is encrypted: enableHTTPS does not change a urlPrefix with http://")
	case parsed.Scheme == "http" && e.TLS != nil:
		x.add(wrong, e, "tlsConfig", "use https:// in urlPrefix, or remove tlsConfig",
			"nothing is encrypted: tlsConfig does not change a urlPrefix with http://")
	case parsed.Scheme == "https" && !e.hasCA() && !e.tls().Insecure && e.EnableHTTPS:
		x.add(wrong, e, "enableHTTPS",
			"set the certificate authority in tlsConfig, or insecure: true to accept any certificate",
			"enableHTTPS without a certificate authority accepts any certificate")
	case parsed.Scheme == "https" && !e.hasCA() && !e.tls().Insecure:
		x.add(wrong, e, "urlPrefix", "set the certificate authority in tlsConfig",
			"neither tlsConfig nor the scheduler's image contains a certificate authority: every call fails")
	}
}

// identity checks how both sides authenticate.
func (x *extenderCheck) identity(e checkedExtender) {
	t := e.tls()
	if t.Insecure && e.hasCA() {
		x.add(refused, e, "tlsConfig", "remove insecure",
			"tlsConfig has a certificate authority and insecure: true, which the scheduler does not start with")
	} else if t.Insecure {
		x.add(warning, e, "tlsConfig", "set the certificate authority instead",
			"insecure: true accepts any certificate, so the extender is not authenticated")
	}
	if (t.CertFile == "") != (t.KeyFile == "") {
		x.add(wrong, e, "tlsConfig", "set both", "certFile and keyFile have no effect without each other")
	}
	x.clientCertificate(e)
	if t.CAFile != "" && len(t.CAData) > 0 && e.node == nil {
		x.add(wrong, e, "tlsConfig", "set one of them", "caData overrides caFile")
	}
	if len(t.CAData) > 0 && !x509.NewCertPool().AppendCertsFromPEM(t.CAData) {
		severity := refused
		if !x.rules.RequiresExtenderCA {
			severity = wrong // it starts, but trusts no certificate
		}
		x.add(severity, e, "tlsConfig", "set base64-encoded PEM certificates", "caData contains no certificate")
	}
}

// clientCertificate checks a certificate and key that are in the source, which the scheduler parses
// when it starts.
func (x *extenderCheck) clientCertificate(e checkedExtender) {
	config := node.Get(e.node, "tlsConfig")
	certificate, err := base64.StdEncoding.DecodeString(node.Text(config, "certData"))
	key, keyErr := base64.StdEncoding.DecodeString(node.Text(config, "keyData"))
	if len(certificate) == 0 || len(key) == 0 || err != nil || keyErr != nil {
		return
	}
	if _, err := tls.X509KeyPair(certificate, key); err != nil {
		x.add(refused, e, "tlsConfig", "set a base64-encoded PEM certificate and its key", "certData and keyData: %v", err)
	}
}

func (x *extenderCheck) timeout(e checkedExtender) {
	switch {
	case e.HTTPTimeout < 0:
		x.add(wrong, e, "httpTimeout", "use 1s", "with httpTimeout %s every call fails immediately", e.HTTPTimeout)
	case e.HTTPTimeout == 0:
		x.add(warning, e, "httpTimeout", "set httpTimeout: 1s",
			"without httpTimeout the scheduler waits %s for each call, and schedules no other pod meanwhile", longTimeout)
	case e.HTTPTimeout > longTimeout:
		x.add(warning, e, "httpTimeout", "1s is enough for most",
			"with httpTimeout %s an unresponsive extender blocks all pods that long with each call", e.HTTPTimeout)
	}
}

// nodesLookEmpty is the problem that nodes which a filter returns whole have lost their pods:
// resource scores are computed as for empty nodes.
const nodesLookEmpty = "kubernetes#141781"

func (x *extenderCheck) cache(e checkedExtender) {
	if *e.NodeCacheCapable || e.FilterVerb == "" && e.PrioritizeVerb == "" {
		return
	}
	const try = "cache nodes in the extender and set nodeCacheCapable: true, if possible"
	if e.FilterVerb != "" && versions.HasProblem(x.release, nodesLookEmpty) {
		x.add(warning, e, "nodeCacheCapable", try,
			"with nodeCacheCapable: false %s scores filtered nodes as if they were empty (%s), and sends complete nodes with "+
				"each call", x.release, nodesLookEmpty)
		return
	}
	x.add(warning, e, "nodeCacheCapable", try,
		"with nodeCacheCapable: false each call has the complete nodes, which is slow in large clusters")
}

func (x *extenderCheck) ignorable(e checkedExtender) {
	if e.Ignorable == nil {
		x.add(wrong, e, "",
			"set ignorable: true to schedule pods while the extender is unavailable, or ignorable: false to keep them pending",
			"ignorable is not set; by default no pod is scheduled while the extender is unavailable")
		return
	}
	if *e.Ignorable && e.BindVerb != "" && !x.rules.IgnorableBind {
		x.add(warning, e, "ignorable", "its pods stay pending while it is unavailable",
			"ignorable: true does not apply to bindVerb before 1.30: a pod that it cannot bind is retried later")
	}
}
