package profiles

import (
	"cmp"
	"encoding/base64"
	"slices"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"
)

// withDefaults returns the extender as it is written.
func (e Extender) withDefaults() Extender {
	e.HTTPTimeout = cmp.Or(e.HTTPTimeout, DefaultExtenderTimeout)
	if e.NodeCacheCapable == nil {
		yes := true
		e.NodeCacheCapable = &yes
	}
	return e
}

// node is the extender as an element of extenders, which is the same in every
// config API.
func (e Extender) node() *yaml.Node {
	e = e.withDefaults()
	n := mapping("urlPrefix", str(e.URLPrefix))
	texts := func(m *yaml.Node, fields ...string) {
		for i := 0; i < len(fields); i += 2 {
			if fields[i+1] != "" {
				put(m, fields[i], str(fields[i+1]))
			}
		}
	}
	texts(n, "filterVerb", e.FilterVerb, "preemptVerb", e.PreemptVerb, "prioritizeVerb", e.PrioritizeVerb)
	if e.PrioritizeVerb != "" {
		put(n, "weight", integer(int(e.Weight)))
	}
	texts(n, "bindVerb", e.BindVerb)
	if e.EnableHTTPS {
		put(n, "enableHTTPS", boolean(true))
	}
	if t := e.TLS; t != nil {
		tls := mapping()
		if t.Insecure {
			put(tls, "insecure", boolean(true))
		}
		texts(tls, "serverName", t.ServerName, "caFile", t.CAFile, "certFile", t.CertFile, "keyFile", t.KeyFile,
			"caData", base64.StdEncoding.EncodeToString(t.CAData))
		put(n, "tlsConfig", tls)
	}
	prune(n, "tlsConfig")
	put(n, "httpTimeout", str(e.HTTPTimeout.String()))
	put(n, "nodeCacheCapable", boolean(*e.NodeCacheCapable))
	for _, r := range e.ManagedResources {
		resource := mapping("name", str(r.Name))
		if r.IgnoredByScheduler {
			put(resource, "ignoredByScheduler", boolean(true))
		}
		all := list(n, "managedResources")
		all.Content = append(all.Content, resource)
	}
	put(n, "ignorable", boolean(e.Ignorable != nil && *e.Ignorable))
	if e.Name != "" {
		n.HeadComment = "# extender " + e.Name
	}
	return n
}

// readExtender is the reverse of node, for an extender that somebody wrote. What
// is not said is as the scheduler takes it: its node cache is not the extender's
// own. Ignorable stays nil.
func readExtender(n *yaml.Node) Extender {
	cached := isTrue(get(n, "nodeCacheCapable"))
	e := Extender{
		URLPrefix: text(get(n, "urlPrefix")), FilterVerb: text(get(n, "filterVerb")), PrioritizeVerb: text(get(n, "prioritizeVerb")),
		PreemptVerb: text(get(n, "preemptVerb")), BindVerb: text(get(n, "bindVerb")), Weight: int64(number(get(n, "weight"))),
		EnableHTTPS: isTrue(get(n, "enableHTTPS")) || isTrue(get(n, "enableHttps")),
		HTTPTimeout: readTimeout(get(n, "httpTimeout")), NodeCacheCapable: &cached,
	}
	if given := get(n, "ignorable"); !isNull(given) {
		ignorable := isTrue(given)
		e.Ignorable = &ignorable
	}
	if t := get(n, "tlsConfig"); isMapping(t) {
		decoded, err := base64.StdEncoding.DecodeString(text(get(t, "caData")))
		if err != nil {
			decoded = []byte("not base64")
		}
		e.TLS = &ExtenderTLS{
			Insecure: isTrue(get(t, "insecure")), ServerName: text(get(t, "serverName")), CAFile: text(get(t, "caFile")), CAData: decoded,
			CertFile: cmp.Or(text(get(t, "certFile")), text(get(t, "certData"))), KeyFile: cmp.Or(text(get(t, "keyFile")), text(get(t, "keyData"))),
		}
	}
	for _, r := range items(get(n, "managedResources")) {
		e.ManagedResources = append(e.ManagedResources, ManagedResource{text(get(r, "name")), isTrue(get(r, "ignoredByScheduler"))})
	}
	return e
}

// readTimeout reads a duration, or the nanoseconds of a Policy; 0 where there is
// none.
func readTimeout(n *yaml.Node) time.Duration {
	if nanoseconds, err := strconv.ParseInt(text(n), 10, 64); err == nil {
		return time.Duration(nanoseconds)
	}
	d, err := time.ParseDuration(text(n))
	if err != nil {
		return 0
	}
	return d
}

// filesOfExtenders are the fields of tlsConfig that hold paths.
func filesOfExtenders() []string { return []string{"caFile", "certFile", "keyFile"} }

// extenderFiles returns the files that the extenders of a configuration name.
func extenderFiles(root *yaml.Node) []string {
	var files []string
	for _, e := range items(get(root, "extenders")) {
		for _, name := range filesOfExtenders() {
			if file := text(get(e, "tlsConfig", name)); file != "" {
				files = append(files, file)
			}
		}
	}
	slices.Sort(files)
	return slices.Compact(files)
}

// dropExtenderFiles takes the files out of the extenders of a configuration.
func dropExtenderFiles(root *yaml.Node) {
	for _, e := range items(get(root, "extenders")) {
		for _, name := range filesOfExtenders() {
			if text(get(e, "tlsConfig", name)) != "" {
				remove(get(e, "tlsConfig"), name)
			}
		}
	}
}
