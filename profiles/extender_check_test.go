package profiles_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

// validExtender returns an extender without problems.
func validExtender() profiles.Extender {
	return profiles.Extender{Name: "x", URLPrefix: "http://127.0.0.1:1/x", FilterVerb: "filter", Ignorable: yes(),
		NodeCacheCapable: yes()}
}

func TestCheckExtendersAcceptsValidExtender(t *testing.T) {
	for _, r := range versions.Releases() {
		if notes, err := profiles.CheckExtenders(r, []profiles.Extender{validExtender()}); err != nil || len(notes) > 0 {
			t.Errorf("%s: %v %v", r, notes, err)
		}
	}
}

func TestCheckExtendersReportsProblemsAndWarnings(t *testing.T) {
	tls := func(e *profiles.Extender) *profiles.ExtenderTLS {
		e.URLPrefix, e.EnableHTTPS, e.TLS = "https://x:1", true, &profiles.ExtenderTLS{CAData: authority(t)}
		return e.TLS
	}
	results := transcript{}
	for _, c := range []struct {
		name, release string
		change        func(e *profiles.Extender)
		refused, warn string
	}{
		{name: "no verb", change: func(e *profiles.Extender) { e.FilterVerb = "" },
			refused: "it has no verb, so it is never called"},
		{name: "no address", change: func(e *profiles.Extender) { e.URLPrefix = "" }, refused: "invalid urlPrefix"},
		{name: "an address without scheme", change: func(e *profiles.Extender) { e.URLPrefix = "load.kube-system.svc:80" },
			refused: "invalid urlPrefix"},
		{name: "an address with a query", change: func(e *profiles.Extender) { e.URLPrefix = "http://x/y?z=1" },
			refused: "the verb is appended to it"},
		{name: "no weight", change: func(e *profiles.Extender) { e.PrioritizeVerb = "p" },
			refused: "it has a prioritizeVerb, but no weight above 0"},
		{name: "a weight below 0", change: func(e *profiles.Extender) { e.PrioritizeVerb, e.Weight = "p", -1 },
			refused: "it has a prioritizeVerb, but no weight above 0"},
		{name: "a weight for nothing", change: func(e *profiles.Extender) { e.Weight = 3 },
			warn: "the weight 3 has no effect without a prioritizeVerb"},
		{name: "HTTPS without CA", change: func(e *profiles.Extender) { tls(e).CAData = nil },
			refused: "enableHTTPS without a certificate authority accepts any certificate"},
		{name: "HTTPS without TLS", change: func(e *profiles.Extender) { e.URLPrefix = "https://x" },
			refused: "neither tlsConfig nor the scheduler's image contains a certificate authority: every call fails"},
		{name: "enableHTTPS with an http URL", change: func(e *profiles.Extender) { e.EnableHTTPS = true },
			refused: "nothing is encrypted: enableHTTPS"},
		{name: "TLS that is none", change: func(e *profiles.Extender) {
			tls(e)
			e.EnableHTTPS, e.URLPrefix = false, "http://x"
		}, refused: "nothing is encrypted: tlsConfig"},
		{name: "insecure", change: func(e *profiles.Extender) { tls(e).CAData = nil; e.TLS.Insecure = true },
			warn: "insecure: true accepts any certificate, so the extender is not authenticated"},
		{name: "insecure with a CA", change: func(e *profiles.Extender) { tls(e).Insecure = true },
			refused: "which the scheduler does not start with"},
		{name: "invalid CA", change: func(e *profiles.Extender) { tls(e).CAData = []byte("x") },
			refused: "caData contains no certificate"},
		{name: "two CAs", change: func(e *profiles.Extender) { tls(e).CAFile = "/x" }, refused: "caData overrides caFile"},
		{name: "a certificate without key", change: func(e *profiles.Extender) { tls(e).CertFile = "/x" },
			refused: "certFile and keyFile have no effect without each other"},
		{name: "negative timeout", change: func(e *profiles.Extender) { e.HTTPTimeout = -1 },
			refused: "every call fails immediately"},
		{name: "long timeout", change: func(e *profiles.Extender) { e.HTTPTimeout = 30e9 },
			warn: "with httpTimeout 30s an unresponsive extender blocks all pods that long with each call"},
		{name: "whole nodes", change: func(e *profiles.Extender) { e.NodeCacheCapable = no() },
			warn: "with nodeCacheCapable: false each call has the complete nodes, which is slow in large clusters"},
		{name: "whole nodes that look empty", release: "v1.33.13",
			change: func(e *profiles.Extender) { e.NodeCacheCapable = no() },
			warn:   "v1.33.13 scores filtered nodes as if they were empty"},
		{name: "whole nodes that look empty still", release: "v1.37.1",
			change: func(e *profiles.Extender) { e.NodeCacheCapable = no() }, warn: "(kubernetes#141781)"},
		{name: "whole nodes that are scored only", release: "v1.36.3", change: func(e *profiles.Extender) {
			e.NodeCacheCapable, e.FilterVerb, e.PrioritizeVerb, e.Weight = no(), "", "p", 1
		}, warn: "with nodeCacheCapable: false each call has the complete nodes, which is slow in large clusters"},
		{name: "a verb with a slash", change: func(e *profiles.Extender) { e.FilterVerb = "/filter" },
			warn: "//filter: many servers do not serve a path with two slashes"},
		{name: "whole nodes by default", change: func(e *profiles.Extender) { e.NodeCacheCapable = nil },
			warn: "with nodeCacheCapable: false each call has the complete nodes"},
		{name: "ignorable unset", change: func(e *profiles.Extender) { e.Ignorable = nil },
			refused: "ignorable is not set; by default no pod is scheduled while the extender is unavailable"},
		{name: "an ignorable binder", release: "v1.29.2", change: func(e *profiles.Extender) {
			e.BindVerb, e.ManagedResources = "b", []profiles.ManagedResource{{Name: "a.b/c"}}
		}, warn: "ignorable: true does not apply to bindVerb before 1.30: a pod that it cannot bind is retried later"},
		{name: "a binder of everything", release: "v1.30.14", change: func(e *profiles.Extender) { e.BindVerb = "b" },
			warn: "it has a bindVerb and no managedResources, so it binds every pod instead of the bind plugins"},
		{name: "a resource of Kubernetes",
			change:  func(e *profiles.Extender) { e.ManagedResources = []profiles.ManagedResource{{Name: "cpu"}} },
			refused: `"cpu" is not the name of an extended resource`},
		{name: "invalid resource name", change: func(e *profiles.Extender) {
			e.ManagedResources = []profiles.ManagedResource{
				{Name: "A_.b/c"}}
		}, refused: "is not the name of an extended resource: "},
		{name: "a quota", change: func(e *profiles.Extender) {
			e.ManagedResources = []profiles.ManagedResource{
				{Name: "requests.a/b"}}
		}, refused: "names with the prefix requests. are for quotas"},
		{name: "a resource twice", change: func(e *profiles.Extender) {
			e.ManagedResources = []profiles.ManagedResource{{Name: "a.b/c"}, {Name: "a.b/c"}}
		}, refused: "a.b/c is named twice, first by extender x"},
		{name: "ignored resource without filter", change: func(e *profiles.Extender) {
			e.FilterVerb, e.BindVerb = "", "b"
			e.ManagedResources = []profiles.ManagedResource{{Name: "a.b/c", IgnoredByScheduler: true}}
		}, warn: "a.b/c is not checked on nodes: the scheduler ignores it, and the extender has no filterVerb"},
		{name: "ignored resource of an ignorable extender", change: func(e *profiles.Extender) {
			e.ManagedResources = []profiles.ManagedResource{{Name: "a.b/c", IgnoredByScheduler: true}}
		},
			warn: "is not checked on nodes while the extender is unavailable: it is ignorable, and the scheduler ignores the " +
				"resource"},
	} {
		e := validExtender()
		c.change(&e)
		if c.release == "" {
			c.release = "v1.24.3"
		}
		notes, err := profiles.CheckExtenders(release(t, c.release), []profiles.Extender{e})
		results.add(c.name, err, notes, nil)
		t.Run(c.name, func(t *testing.T) {
			if (c.refused != "") != (err != nil) || err != nil && !strings.Contains(err.Error(), c.refused) {
				t.Errorf("got error %v", err)
			}
			var invalid *profiles.Error
			if err != nil && (!errors.As(err, &invalid) || !invalid.Invalid() || invalid.Hint() == "") {
				t.Errorf("%v: no hint, or not the input's", err)
			}
			text := ""
			for _, n := range notes {
				text += n.String()
				if !n.Warning {
					t.Errorf("%s is not a warning", n)
				}
			}
			if !strings.Contains(text, c.warn) || c.warn == "" && text != "" {
				t.Errorf("got warnings %q", text)
			}
		})
	}
	results.equal(t, "check-extenders.txt")
}

func TestCheckExtendersComparesExtenders(t *testing.T) {
	other := validExtender()
	other.Name, other.URLPrefix = "y", "http://127.0.0.1:2"
	binder, second := validExtender(), other
	binder.BindVerb, second.BindVerb = "bind", "bind"
	if _, err := profiles.CheckExtenders(release(t, "v1.36.3"), []profiles.Extender{binder, second}); err == nil ||
		!strings.Contains(err.Error(), "extender y: it has a bindVerb, and so does extender x") {
		t.Errorf("two binders: %v", err)
	}
	other.URLPrefix = validExtender().URLPrefix
	notes, err := profiles.CheckExtenders(release(t, "v1.36.3"), []profiles.Extender{validExtender(), other})
	if err != nil || len(notes) != 1 || !strings.Contains(notes[0].Message, "is called twice for every pod") {
		t.Errorf("the same twice: %v %v", notes, err)
	}
}

// A source may have been in use for years, so only settings that the release rejects are errors.
func TestRenderWarnsAboutExtendersOfSource(t *testing.T) {
	document := func(api, rest string) string {
		return "apiVersion: kubescheduler.config.k8s.io/" + api + "\nkind: KubeSchedulerConfiguration\n" + rest
	}
	results := transcript{}
	for _, c := range []struct{ name, release, source, refused, warn string }{
		{"HTTPS without CA", "v1.24.3",
			document("v1beta3",
				"extenders:\n- urlPrefix: https://x\n  filterVerb: f\n  enableHTTPS: true\n  ignorable: true\n  "+
					"nodeCacheCapable: true\n  httpTimeout: 1s\n"),
			"", "line 6: extenders[0]: enableHTTPS without a certificate authority accepts any certificate"},
		{"timeout and ignorable unset", "v1.24.3",
			document("v1beta3", "extenders: [{urlPrefix: 'http://x', filterVerb: f}]\n"), "",
			"for each call, and schedules no other pod meanwhile"},
		{"two binders", "v1.36.3",
			document("v1", "extenders: [{urlPrefix: 'http://x', bindVerb: f}, {urlPrefix: 'http://y', bindVerb: f}]\n"),
			"f.yaml:3:75: extenders[1]: it has a bindVerb", ""},
		{"invalid CA", "v1.36.3",
			document("v1", "extenders: [{urlPrefix: 'https://x', filterVerb: f, tlsConfig: {caData: eA==}}]\n"),
			"caData contains no certificate", ""},
		{"invalid CA in 1.21", "v1.21.3",
			document("v1beta1", "extenders: [{urlPrefix: 'https://x', filterVerb: f, tlsConfig: {caData: eA==}}]\n"), "",
			"caData contains no certificate"},
		{"resources ignored twice, 1.21", "v1.21.3",
			document("v1beta1",
				"extenders: [{urlPrefix: 'http://x', filterVerb: f, managedResources: [{name: a.b/c, ignoredByScheduler: "+
					"true}]}]\nprofiles: [{pluginConfig: [{name: NodeResourcesFit, args: {ignoredResources: [a.b/d]}}]}]\n"),
			"v1.21.3 does not start if a resource is ignoredByScheduler and pluginConfig has arguments of NodeResourcesFit", ""},
		{"resources ignored twice, 1.22", "v1.22.2",
			document("v1beta1",
				"extenders: [{urlPrefix: 'http://x', filterVerb: f, managedResources: [{name: a.b/c, ignoredByScheduler: "+
					"true}]}]\nprofiles: [{pluginConfig: [{name: NodeResourcesFit, args: {ignoredResources: [a.b/d]}}]}]\n"),
			"", "ignoredByScheduler overrides ignoredResources of"},
	} {
		out, err := convert(t, c.release, c.source)
		if out != nil {
			results.add(c.name, err, out.Notes, out.YAML)
		} else {
			results.add(c.name, err, nil, nil)
		}
		t.Run(c.name, func(t *testing.T) {
			if (c.refused != "") != (err != nil) || err != nil && !strings.Contains(err.Error(), c.refused) {
				t.Fatalf("got error %v", err)
			}
			valid, invalid := profiles.Validate(profiles.ValidateRequest{Release: release(t, c.release),
				Source: []byte(c.source)})
			if invalid != nil || valid.Valid() != (c.refused == "") {
				t.Errorf("Validate says %+v, %v", valid, invalid)
			}
			text := ""
			if out != nil {
				for _, n := range out.Notes {
					if n.Warning {
						text += n.String() + "\n"
					}
				}
			}
			if !strings.Contains(text, c.warn) {
				t.Errorf("got warnings %q", text)
			}
		})
	}
	results.equal(t, "render-extenders.txt")
}
