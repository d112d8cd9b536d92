package replace

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/base/certificates"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/replace/staticpod"
	"github.com/pmk-sched/pmk-sched/profiles"
)

// replaced runs a replacement that succeeds.
func (n *testNode) replaced(t *testing.T, o Options) {
	t.Helper()
	o.StableFor = time.Millisecond
	if _, err := n.run(t, o); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second) // backups are named by time
}

// backup returns the backup of the current replacement.
func (n *testNode) backup(t *testing.T) *staticpod.Backup {
	t.Helper()
	b, err := staticpod.Current(n.deps(t).Files)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// recorded returns the record of the current replacement.
func (n *testNode) recorded(t *testing.T) *record {
	t.Helper()
	r, err := requireRecord(n.backup(t))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// recordFile returns the path of the record of the current replacement.
func (n *testNode) recordFile(t *testing.T) string {
	t.Helper()
	return n.path(filepath.Join(n.backup(t).Dir(), "record.json"))
}

// configuration returns the only configuration that pmk-sched wrote.
func (n *testNode) configuration(t *testing.T) string {
	t.Helper()
	name := strings.TrimSpace(n.state(t).Configurations)
	if strings.Contains(name, "\n") {
		t.Fatalf("configurations %q", name)
	}
	return n.read(t, filepath.Join(n.layout.ConfigDir, name))
}

// What a request leaves open is kept from the record, whatever the manifest and the files have.
func TestReplacementKeepsWhatTheRequestLeavesOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newTestNode(t, "kubeadm")
		first := asks("localhost/s:{release}", "binpack")
		first.Plugins = []profiles.Plugin{{Name: "Timestamp", Points: []string{"preBind"}}}
		n.replaced(t, first)
		if r := n.recorded(t); r.Release != n.info().Release || r.Request.Spec.Image.Reference != first.Image {
			t.Errorf("recorded: %+v", r)
		}

		n.replaced(t, asks("", "spread"))
		r := n.recorded(t)
		if diff := cmp.Diff(first.Plugins, r.Plugins); diff != "" || r.Request.Spec.Image.Reference != first.Image ||
			r.Request.Spec.Configuration.Preset != "spread" || n.backup(t).Image != "localhost/s:v1.24.3" {
			t.Errorf("another configuration: %+v, plugins (-want +got):\n%s", r.Request.Spec, diff)
		}
		if got := n.configuration(t); !strings.Contains(got, "name: Timestamp\n") {
			t.Errorf("the plugin of the image is not enabled in\n%s", got)
		}

		n.write(t, n.layout.Manifest, n.original) // as kubeadm does
		n.replaced(t, asks("localhost/s:v1.24.3-2", ""))
		if r := n.recorded(t); r.Request.Spec.Configuration.Preset != "spread" || len(r.Plugins) > 0 {
			t.Errorf("another image: %+v", r)
		}

		n.write(t, n.layout.Manifest, n.original)
		n.replaced(t, asks("", "binpack"))
		if r := n.recorded(t); !r.Request.Spec.UsesOwnImage() {
			t.Errorf("the image of a manifest that was rewritten is not kept: %+v", r.Request.Spec.Image)
		}
		n.isRestored(t)
	})
}

// The configuration of the original scheduler is not pmk-sched's: it is read from its file each
// time. Without one, flags that --config overrides stay in effect, also in the second replacement.
func TestOriginalConfigurationAndFlagsStayInEffect(t *testing.T) {
	for name, flags := range map[string]string{
		"configuration": "    - --config=/etc/kubernetes/scheduler.conf\n    - --kube-api-qps=77\n",
		"flags":         "    - --kube-api-qps=77\n",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newTestNode(t, "kubeadm")
				n.original = strings.Replace(n.original, "    volumeMounts:", flags+"    volumeMounts:", 1)
				n.write(t, n.layout.Manifest, n.original)
				n.write(t, n.layout.Kubeconfig,
					"apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\nparallelism: 5\n")
				for _, image := range []string{"localhost/s:v1.24.3", "localhost/s:v1.24.3-2"} {
					n.replaced(t, asks(image, ""))
					got := n.configuration(t)
					own := strings.Contains(got, "parallelism: 5\n")
					if converted := strings.Contains(got, "qps: 77\n"); own == converted || own != (name == "configuration") {
						t.Errorf("%s: got\n%s", image, got)
					}
				}
				n.isRestored(t)
			})
		})
	}
}

// wired returns an extender that pmk-sched deployed.
func wired(t *testing.T, name string) v1alpha1.Extender {
	t.Helper()
	made, _, err := certificates.Ensure(certificates.Set{}, certificates.Request{Name: name, Now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	no := false
	return v1alpha1.Extender{Name: name, Ignorable: &no, Deployed: &v1alpha1.DeployedExtender{
		URLPrefix: "https://" + name + ".example.com", ServerName: name, CAData: made.CA.Cert}}
}

func TestExtenderIsCalledUntilItIsRemoved(t *testing.T) {
	call := func(t *testing.T, n *testNode, name string) {
		t.Helper()
		n.replaced(t, Options{}.withExtender(wired(t, name)))
		if got := n.configuration(t); !strings.Contains(got, "tlsConfig:") {
			t.Errorf("no extender in\n%s", got)
		}
	}
	leave := func(t *testing.T, n *testNode, name string) {
		t.Helper()
		if err := LeaveExtender(t.Context(), n.deps(t), n.info(), Options{StableFor: time.Millisecond}, name); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // backups are named by time
	}
	t.Run("alone", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			n := newTestNode(t, "kubeadm")
			call(t, n, "a")
			call(t, n, "b")
			leave(t, n, "a")
			if got := n.configuration(t); strings.Count(got, "urlPrefix:") != 1 {
				t.Errorf("want one extender in\n%s", got)
			}
			leave(t, n, "b")
			n.isUndone(t, state{Manifest: n.original}, false)
		})
	})
	t.Run("in a replacement", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			n := newTestNode(t, "kubeadm")
			n.replaced(t, asks("localhost/s:v1.24.3", "spread"))
			before := n.configuration(t)
			call(t, n, "a")
			n.replaced(t, asks("", "binpack"))
			if got := n.configuration(t); !strings.Contains(got, "urlPrefix: https://a.example.com\n") {
				t.Errorf("another preset lost the extender:\n%s", got)
			}
			n.replaced(t, asks("", "spread"))
			leave(t, n, "a")
			if diff := cmp.Diff(before, n.configuration(t)); diff != "" {
				t.Errorf("without the extender (-want +got):\n%s", diff)
			}
			if b := n.backup(t); b == nil || b.Image != "localhost/s:v1.24.3" {
				t.Errorf("the replacement was lost: %+v", b)
			}
		})
	})
}

// Whatever a backup records, restore works, and another replacement is possible or says what to do.
func TestRestoreDoesNotNeedTheRecord(t *testing.T) {
	const files = `{"request": {"spec": {"configuration": {"file": "/etc/shadow"}}}}`
	for name, c := range map[string]struct{ text, refused, hint string }{
		"none":       {"", "does not record its request", "pmk-sched replace"},
		"not a JSON": {"{", "read the record of backup /var/lib/pmk-sched/backups/", "pmk-sched restore"},
		"no request": {"{}", "it has no request", "pmk-sched restore"},
		"files":      {files, "spec.configuration.file names a file, whose content is not recorded", "pmk-sched restore"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newTestNode(t, "kubeadm")
				n.replaced(t, asks("localhost/s:v1.24.3", "binpack"))
				if err := os.WriteFile(n.recordFile(t), []byte(c.text), 0o600); err != nil {
					t.Fatal(err)
				}
				refuses := func(err error) {
					t.Helper()
					if err == nil || !strings.Contains(err.Error(), c.refused) ||
						!slices.ContainsFunc(problem.Hints(err), func(h string) bool { return strings.Contains(h, c.hint) }) {
						t.Errorf("got %v, hints %q", err, problem.Hints(err))
					}
				}
				_, err := requireRecord(n.backup(t))
				refuses(err)
				refuses(LeaveExtender(t.Context(), n.deps(t), n.info(), Options{}, "a"))
				if name == "none" {
					_, err := n.run(t, asks("localhost/s:v1.24.3-2", ""))
					if err == nil || !slices.Contains(problem.Hints(err), "specify one with --config or --preset") {
						t.Errorf("got %v, hints %q", err, problem.Hints(err))
					}
					n.replaced(t, asks("localhost/s:v1.24.3-2", "binpack"))
					n.recorded(t)
				}
				n.isRestored(t)
			})
		})
	}
}
