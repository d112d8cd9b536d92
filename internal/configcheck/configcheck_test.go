package configcheck

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A scheduler of 1.20–1.22 listens on what its configuration names before it writes the configuration out.
func TestCheckDoesNotListenAtTheAddressesOfTheScheduler(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"equal", "healthzBindAddress: 127.0.0.1:10261\nmetricsBindAddress: \"127.0.0.1:10261\"\nparallelism: 16\n",
			`^healthzBindAddress: 127\.0\.0\.1:(\d+)\nmetricsBindAddress: 127\.0\.0\.1:(\d+)\nparallelism: 16\n$`},
		{"different", "healthzBindAddress: 0.0.0.0:10251\nmetricsBindAddress: ':10252'\n",
			`^healthzBindAddress: 127\.0\.0\.1:(\d+)\nmetricsBindAddress: 127\.0\.0\.1:(\d+)\n$`},
		{"none", "healthzBindAddress: \"\"\nmetricsBindAddress: 127.0.0.1:0\n", `^healthzBindAddress: ""\nmetricsBindAddress: 127\.0\.0\.1:0\n$`},
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
			output: "I1121 07:47:48.1   1 serving.go:331] Generated self-signed cert in-memory\ncouldn't read " + file + ": strict decoder error\n",
			want:   "couldn't read the configuration: strict decoder error",
		},
		"unknown flag, after pages of usage": {
			output: "Usage:\n  kube-scheduler [flags]\n\nDebugging flags:\n      --profiling   Enable profiling\n\nError: unknown flag: --nosuchflag\n",
			want:   "unknown flag: --nosuchflag",
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

// Some plugins ask the API server as they are made. By then the scheduler has found nothing wrong with the configuration.
func TestPluginThatNeedsTheAPIServerIsNotRefused(t *testing.T) {
	const failed = `E1121 07:47:48.5 10363 run.go:74] "command failed" err="initializing profiles: creating profile for scheduler name s: initializing plugin \"P\": `
	for name, c := range map[string]struct {
		said    string
		partly  bool
		problem string
	}{
		"asks":            {failed + `failed to get server groups: Get \"https://127.0.0.1:1/api\": dial tcp 127.0.0.1:1: connect: connection refused"`, true, ""},
		"wrong arguments": {failed + `unknown field \"anotation\""`, false, `unknown field "anotation"`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			program := filepath.Join(dir, "kube-scheduler")
			script := "#!/bin/sh\ncat >&2 <<'END'\n" + c.said + "\nEND\nexit 1\n"
			if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
				t.Fatal(err)
			}
			err := Check(t.Context(), Binary{Path: program}, dir, []byte("kind: KubeSchedulerConfiguration\n"), "/kubeconfig", nil)
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
