package replace

import (
	"bytes"
	"testing"
)

// FuzzKubeEnv searches settings of PMK's node agent that crash the editor, or that change further
// when they are changed again.
func FuzzKubeEnv(f *testing.F) {
	for _, text := range []string{
		"export SCHEDULER_FLAGS=\"\"\n", "SCHEDULER_FLAGS='--v=2,--config=/old'\n", "A=b", "", "SCHEDULER_FLAGS=--v=2 # x\n",
		"SCHEDULER_FLAGS=a\nSCHEDULER_FLAGS=b\n", "export SCHEDULER_FLAGS=\"$(x)\"\r\n", "SCHEDULER_FLAGS='a\"b'",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		const config = "/etc/pf9/kube.d/configs/pmk-sched-1.yaml"
		once, err := withSchedulerFlag("kube.env", text, config)
		if err != nil {
			return
		}
		if !bytes.Contains(once, []byte("--config="+config)) {
			t.Fatalf("the flag is not set:\n%s", once)
		}
		twice, err := withSchedulerFlag("kube.env", once, config)
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("a second change differs: %v\n%q\n%q", err, once, twice)
		}
	})
}
