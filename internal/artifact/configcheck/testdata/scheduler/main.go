// Command scheduler is a substitute for kube-scheduler in tests. It refuses every Policy, and the
// flags --port and --no-such-flag when it prints its version. It refuses a configuration with the
// comment "# says TEXT", with TEXT as the reason, and panics in a plugin with TEXT for the comment
// "# panics TEXT".
package main

import (
	"fmt"
	"os"
	"strings"
)

func main() {
	for i, arg := range os.Args {
		switch {
		case arg == "--config":
			text, err := os.ReadFile(os.Args[i+1])
			if err != nil {
				panic(err)
			}
			if _, value, found := strings.Cut(string(text), "# panics "); found {
				newPlugin(value)
			}
			if _, said, found := strings.Cut(string(text), "# says "); found {
				_, _ = fmt.Fprint(os.Stderr, said)
				os.Exit(1)
			}
		case arg == "--version":
			for _, other := range os.Args[i:] {
				if name, _, _ := strings.Cut(other, "="); name == "--port" || name == "--no-such-flag" {
					_, _ = fmt.Fprintf(os.Stderr, "Error: unknown flag: %s\nUsage:\n  kube-scheduler [flags]\n", name)
					os.Exit(1)
				}
			}
			fmt.Println("Kubernetes v1.24.3")
			os.Exit(len(os.Environ()))
		case strings.HasPrefix(arg, "--policy-config-file="):
			text, err := os.ReadFile(strings.TrimPrefix(arg, "--policy-config-file="))
			if err != nil {
				panic(err)
			}
			fmt.Printf("Error: Policy %s", text)
			os.Exit(1)
		case arg == "--write-config-to":
			defer func() {
				if err := os.WriteFile(os.Args[i+1], []byte("{}\n"), 0o600); err != nil {
					panic(err)
				}
			}()
		}
	}
}

func newPlugin(value string) { panic(value) }
