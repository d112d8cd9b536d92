package schema

import (
	"cmp"
	"encoding/base64"
	"slices"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/profiles/node"
)

// WithDefaults returns the extender with defaults filled in.
func (e Extender) WithDefaults() Extender {
	e.HTTPTimeout = cmp.Or(e.HTTPTimeout, DefaultExtenderTimeout)
	if e.NodeCacheCapable == nil {
		e.NodeCacheCapable = new(bool)
	}
	return e
}

// Node returns the extender as an element of extenders, which is the same in every config API.
func (e Extender) Node() *yaml.Node {
	e = e.WithDefaults()
	n := node.Mapping("urlPrefix", node.String(e.URLPrefix))
	texts := func(m *yaml.Node, fields ...string) {
		for i := 0; i < len(fields); i += 2 {
			if fields[i+1] != "" {
				node.Put(m, fields[i], node.String(fields[i+1]))
			}
		}
	}
	texts(n, "filterVerb", e.FilterVerb, "preemptVerb", e.PreemptVerb, "prioritizeVerb", e.PrioritizeVerb)
	if e.PrioritizeVerb != "" {
		node.Put(n, "weight", node.Int(int(e.Weight)))
	}
	texts(n, "bindVerb", e.BindVerb)
	if e.EnableHTTPS {
		node.Put(n, "enableHTTPS", node.Bool(true))
	}
	if t := e.TLS; t != nil {
		tls := node.Mapping()
		if t.Insecure {
			node.Put(tls, "insecure", node.Bool(true))
		}
		texts(tls, "serverName", t.ServerName, "caFile", t.CAFile, "certFile", t.CertFile, "keyFile", t.KeyFile,
			"caData", base64.StdEncoding.EncodeToString(t.CAData))
		node.Put(n, "tlsConfig", tls)
	}
	node.Prune(n, "tlsConfig")
	node.Put(n, "httpTimeout", node.String(e.HTTPTimeout.String()))
	node.Put(n, "nodeCacheCapable", node.Bool(*e.NodeCacheCapable))
	for _, r := range e.ManagedResources {
		resource := node.Mapping("name", node.String(r.Name))
		if r.IgnoredByScheduler {
			node.Put(resource, "ignoredByScheduler", node.Bool(true))
		}
		all := node.List(n, "managedResources")
		all.Content = append(all.Content, resource)
	}
	node.Put(n, "ignorable", node.Bool(e.Ignorable != nil && *e.Ignorable))
	if e.Name != "" {
		n.HeadComment = "# extender " + e.Name
	}
	return n
}

// ReadExtender reads an element of extenders. Unset fields have the scheduler's defaults, so
// NodeCacheCapable is false. An unset Ignorable is nil.
func ReadExtender(n *yaml.Node) Extender {
	cached := node.IsTrue(n, "nodeCacheCapable")
	e := Extender{
		URLPrefix: node.Text(n, "urlPrefix"), FilterVerb: node.Text(n, "filterVerb"), PrioritizeVerb: node.Text(n,
			"prioritizeVerb"),
		PreemptVerb: node.Text(n, "preemptVerb"), BindVerb: node.Text(n, "bindVerb"), Weight: int64(node.Number(n, "weight")),
		EnableHTTPS: node.IsTrue(n, "enableHTTPS") || node.IsTrue(n, "enableHttps"),
		HTTPTimeout: ReadTimeout(node.Get(n, "httpTimeout")), NodeCacheCapable: &cached,
	}
	if given := node.Get(n, "ignorable"); !node.IsNull(given) {
		ignorable := node.IsTrue(given)
		e.Ignorable = &ignorable
	}
	if t := node.Get(n, "tlsConfig"); node.IsMapping(t) {
		decoded, err := base64.StdEncoding.DecodeString(node.Text(t, "caData"))
		if err != nil {
			decoded = []byte("not base64")
		}
		e.TLS = &ExtenderTLS{
			Insecure: node.IsTrue(t, "insecure"), ServerName: node.Text(t, "serverName"), CAFile: node.Text(t,
				"caFile"), CAData: decoded,
			CertFile: cmp.Or(node.Text(t, "certFile"), node.Text(t, "certData")), KeyFile: cmp.Or(node.Text(t, "keyFile"),
				node.Text(t, "keyData")),
		}
	}
	for _, r := range node.Items(n, "managedResources") {
		e.ManagedResources = append(e.ManagedResources,
			ManagedResource{node.Text(r, "name"), node.IsTrue(r, "ignoredByScheduler")})
	}
	return e
}

// ReadTimeout reads a duration, or the nanoseconds of a Policy. It returns 0 if n is nil or
// invalid.
func ReadTimeout(n *yaml.Node) time.Duration {
	if nanoseconds, err := strconv.ParseInt(node.Text(n), 10, 64); err == nil {
		return time.Duration(nanoseconds)
	}
	d, err := time.ParseDuration(node.Text(n))
	if err != nil {
		return 0
	}
	return d
}

// filesOfExtenders are the fields of tlsConfig that contain paths.
func filesOfExtenders() []string { return []string{"caFile", "certFile", "keyFile"} }

// ExtenderFiles returns the files that the extenders of a configuration refer to.
func ExtenderFiles(root *yaml.Node) []string {
	var files []string
	for _, e := range node.Items(root, "extenders") {
		for _, name := range filesOfExtenders() {
			if file := node.Text(e, "tlsConfig", name); file != "" {
				files = append(files, file)
			}
		}
	}
	slices.Sort(files)
	return slices.Compact(files)
}

// DropExtenderFiles removes the files from a configuration's extenders.
func DropExtenderFiles(root *yaml.Node) {
	for _, e := range node.Items(root, "extenders") {
		for _, name := range filesOfExtenders() {
			if node.Text(e, "tlsConfig", name) != "" {
				node.Remove(node.Get(e, "tlsConfig"), name)
			}
		}
	}
}
