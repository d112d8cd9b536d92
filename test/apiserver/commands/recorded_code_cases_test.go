//go:build linux && cases

package commands

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
)

func TestConfirmedCodeOfAClusterRunsInASandbox(t *testing.T) {
	pmkSched := kubeadmCluster(t)
	const name = "confirmed"
	mark := recordMarking(t, name, "registry.example.com/s:"+apiserver.Release, apiserver.Release)
	result := pmkSched("simulate", "drain", "--name", name, "--trust-recorded-plugins", controlPlane[0])
	if !strings.Contains(result.Stdout, "ran in a sandbox") {
		t.Errorf("got %s", result)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("the plugin of the revision wrote a file of this machine")
	}
}

// A cluster chooses neither the code that the user builds nor the name to push it to.
func TestUpgradePushesToNoNameOfTheCluster(t *testing.T) {
	pmkSched := kubeadmCluster(t)
	var requests atomic.Int32
	served := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			requests.Add(1)
		}
		served.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	const name = "foreign"
	repository := strings.TrimPrefix(server.URL, "http://") + "/team/kube-scheduler:"
	mark := recordMarking(t, name, repository+"v1.24.1", "v1.24.1")
	notRun := func() {
		t.Helper()
		if _, err := os.Stat(mark); err == nil {
			t.Error("the plugin of the revision was run")
		}
	}
	nothing := func() {
		t.Helper()
		if n := requests.Load(); n > 0 {
			t.Errorf("the registry got %d requests that write", n)
		}
		notRun()
	}
	pmkSched("upgrade", "--name", name).Fails(t, 2, "image "+repository+apiserver.Release,
		"plugin /home/someone/marking, sha256:", "without confirmation", "--yes", "-f pmk-sched.yaml")
	nothing()
	pmkSched("fleet", "upgrade", "--name", name, "--context", "*").Fails(t, 1, "revision 1 of "+name, "--image", "spec.image")
	nothing()

	// The user says yes. The program is checked where it reaches nothing of this machine. No kubelet
	// runs it.
	playController(t, name)
	pmkSched("upgrade", "--name", name, "--yes", "--busybox", "/bin/busybox", "--timeout", "2s", "--stable-for",
		"100ms").Prints(t, "push "+repository+apiserver.Release, "check kube-scheduler --version", "check configuration")
	if requests.Load() == 0 {
		t.Error("the confirmed image was not pushed")
	}
	notRun()
}
