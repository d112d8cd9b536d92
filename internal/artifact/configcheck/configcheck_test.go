package configcheck

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/artifact/sandbox"
)

func TestMain(m *testing.M) {
	if sandbox.Entering(os.Args) {
		os.Exit(sandbox.Enter(os.Args))
	}
	os.Exit(m.Run())
}

// scheduler compiles a substitute for kube-scheduler.
func scheduler(t *testing.T) Binary {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kube-scheduler")
	cmd := exec.Command("go", "build", "-o", file, "./testdata/scheduler")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("compile: %v\n%s", err, out)
	}
	return Binary{Path: file}
}

func TestCheckReturnsTheVerdictOfTheBinary(t *testing.T) {
	binary := scheduler(t)
	const valid = "kind: KubeSchedulerConfiguration\nclientConnection: {kubeconfig: /etc/s/kubeconfig}\n"
	for name, c := range map[string]struct {
		request Request
		binary  Binary
		want    string
	}{
		"valid": {Request{Configuration: []byte(valid)}, binary, ""},
		"refused": {Request{Configuration: []byte(valid +
			"# says E1121 07:47:48.5 1 run.go:74] \"command failed\" err=\"it is wrong\"\n")}, binary,
			"the scheduler refuses the configuration: it is wrong"},
		"names a file": {Request{Configuration: []byte(valid + "# says couldn't read /" + configurationFile +
			": it is wrong\n")}, binary,
			"the scheduler refuses the configuration: couldn't read the configuration: it is wrong"},
		"panics": {Request{Configuration: []byte(valid + "# panics no argument threshold")}, binary,
			"the scheduler refuses the configuration: it panics: no argument threshold, at "},
		"Policy": {Request{Configuration: []byte(valid), Policy: []byte("kind: Policy\n")}, binary,
			"the scheduler refuses the configuration: Policy kind: Policy"},
		"no program": {Request{Configuration: []byte(valid)}, Binary{Path: filepath.Join(t.TempDir(), "none")},
			"no kube-scheduler binary for the check"},
	} {
		t.Run(name, func(t *testing.T) {
			c.request.Kubeconfig = "/etc/s/kubeconfig"
			err := Check(t.Context(), c.binary, t.TempDir(), c.request)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Check(ctx, binary, t.TempDir(), Request{Configuration: []byte(valid), Kubeconfig: "/k"}); !errors.Is(err,
		context.Canceled) || errors.Is(err, ErrNoBinary) {
		t.Errorf("cancelled: got %v", err)
	}
}

// The substitute exits with the number of its environment variables.
func TestVersionOfABinaryThatGetsNoEnvironment(t *testing.T) {
	t.Setenv("SECRET", "1")
	if got, err := Version(t.Context(), scheduler(t), t.TempDir()); err != nil || got != "Kubernetes v1.24.3" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestVersionRefusesFlagsThatTheProgramDoesNotHave(t *testing.T) {
	binary := scheduler(t)
	if got, err := Version(t.Context(), binary, t.TempDir(), "--config=/none", "--v", "4"); err != nil ||
		got != "Kubernetes v1.24.3" {
		t.Errorf("got %q, %v", got, err)
	}
	_, err := Version(t.Context(), binary, t.TempDir(), "--v=4", "--port=0")
	var refused *FlagsError
	if !errors.As(err, &refused) || !refused.Invalid() ||
		err.Error() != "the scheduler refuses its flags: unknown flag: --port" {
		t.Errorf("got %v", err)
	}
}

func TestParseVersion(t *testing.T) {
	for output, want := range map[string]string{
		"Kubernetes v1.24.3": "v1.24.3",
		"Flag --port has been deprecated\nKubernetes v1.23.5": "v1.23.5",
		"Kubernetes v1.29.3-eks-036c24b":                      "v1.29.3",
		"Kubernetes v0.24.9":                                  "",
		"Kubernetes v0.0.0-master+$Format:%H$":                "",
		"scheduler 1.24.3":                                    "",
	} {
		release, ok := ParseVersion(output)
		if ok != (want != "") || ok && release.String() != want {
			t.Errorf("%s: got %s, %v; want %s", output, release, ok, want)
		}
	}
}

// Flags for files and addresses would change the check or fail in it, in every spelling.
func TestCheckedFlags(t *testing.T) {
	args := strings.Fields("--config=/c --kubeconfig /k --secure_port=10259 --v 4 --leader-elect --feature_gates=A=true " +
		"--cert-dir /d --profiling false")
	if got := strings.Join(checkedFlags(args), " "); got != "--v 4 --leader-elect --feature_gates=A=true --profiling false" {
		t.Errorf("got %s", got)
	}
}

// A scheduler of 1.20–1.22 listens at the addresses in its configuration before it writes the
// configuration out.
func TestCheckDoesNotListenAtTheAddressesOfTheScheduler(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"equal", "healthzBindAddress: 127.0.0.1:10261\nmetricsBindAddress: \"127.0.0.1:10261\"\nparallelism: 16\n",
			`^healthzBindAddress: 127\.0\.0\.1:(\d+)\nmetricsBindAddress: 127\.0\.0\.1:(\d+)\nparallelism: 16\n$`},
		{"different", "healthzBindAddress: 0.0.0.0:10251\nmetricsBindAddress: ':10252'\n",
			`^healthzBindAddress: 127\.0\.0\.1:(\d+)\nmetricsBindAddress: 127\.0\.0\.1:(\d+)\n$`},
		{"none", "healthzBindAddress: \"\"\nmetricsBindAddress: 127.0.0.1:0\n",
			`^healthzBindAddress: ""\nmetricsBindAddress: 127\.0\.0\.1:0\n$`},
		{"no address", "healthzBindAddress: x:99999\n", `^healthzBindAddress: x:99999\n$`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := standInListeners([]byte(c.text))
			if err != nil {
				t.Fatal(err)
			}
			found := regexp.MustCompile(c.want).FindStringSubmatch(string(got))
			if found == nil || len(found) == 3 && (found[1] == found[2]) != (c.name == "equal") {
				t.Errorf("got\n%s", got)
			}
		})
	}
}

func TestExitReason(t *testing.T) {
	const file = "/tmp/x/config.yaml"
	tests := map[string]struct{ output, want string }{
		"decoding, from 1.23": {
			output: `E1121 07:47:48.537132   10363 run.go:74] "command failed" err="strict decoding error: unknown field \"paralelism\""` + "\n",
			want:   `strict decoding error: unknown field "paralelism"`,
		},
		"information after the reason": {
			output: `E1121 07:47:48.568952   10373 run.go:74] "command failed" err="ScorePlugin \"NoSuchPlugin\" does not exist"` + "\n" +
				"I1121 07:47:48.502906   10351 configfile.go:108] \"Wrote configuration\"\n",
			want: `ScorePlugin "NoSuchPlugin" does not exist`,
		},
		"before 1.23": {
			output: "I1121 07:47:48.1   1 serving.go:331] Generated self-signed cert in-memory\ncouldn't read " + file +
				": strict decoder error\n",
			want: "couldn't read the configuration: strict decoder error",
		},
		"unknown flag, after pages of usage": {
			output: "Usage:\n  kube-scheduler [flags]\n\nDebugging flags:\n      --profiling   Enable profiling\n\nError: " +
				"unknown flag: --nosuchflag\n",
			want: "unknown flag: --nosuchflag",
		},
		"nothing": {want: "no reason given"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := exitReason([]byte(tt.output), file, "the configuration"); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// Some plugins ask the API server as they are made. By then the scheduler has found nothing wrong
// with the configuration.
func TestPluginThatNeedsTheAPIServerIsNotRefused(t *testing.T) {
	binary := scheduler(t)
	const failed = `E1121 07:47:48.5 10363 run.go:74] "command failed" err="initializing profiles: creating profile for scheduler name s: initializing plugin \"P\": `
	for name, c := range map[string]struct {
		said    string
		partly  bool
		problem string
	}{
		"asks": {failed +
			`failed to get server groups: Get \"https://127.0.0.1:1/api\": dial tcp 127.0.0.1:1: connect: connection refused"`,
			true, ""},
		"wrong arguments": {failed + `unknown field \"anotation\""`, false, `unknown field "anotation"`},
	} {
		t.Run(name, func(t *testing.T) {
			configuration := "kind: KubeSchedulerConfiguration\n# says " + c.said + "\n"
			err := Check(t.Context(), binary, t.TempDir(),
				Request{Configuration: []byte(configuration), Kubeconfig: "/kubeconfig"})
			if errors.Is(err, ErrPartlyChecked) != c.partly {
				t.Errorf("got %v", err)
			}
			var invalid *RefusedError
			if errors.As(err, &invalid) == c.partly || !strings.Contains(err.Error(), c.problem) {
				t.Errorf("got %v", err)
			}
		})
	}
}
