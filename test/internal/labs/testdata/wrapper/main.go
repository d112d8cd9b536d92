// Command wrapper is a kube-scheduler that fails: it answers --version and --write-config-to, and
// then fails as setting specifies.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// setting is the behaviour and the version, separated by a space. The tests replace it in the
// compiled program. It is a variable, so that the compiler does not.
var setting = "behaviour and version of the wrapper"

func main() {
	behaviour, version, _ := strings.Cut(strings.TrimRight(setting, " "), " ")
	for i, arg := range os.Args {
		switch {
		case arg == "--version":
			fmt.Println("Kubernetes " + version)
			return
		case arg == "--write-config-to":
			if err := os.WriteFile(os.Args[i+1], []byte("{}\n"), 0o600); err != nil {
				panic(err)
			}
			return
		}
	}
	switch behaviour {
	case "crash":
		fmt.Println("this scheduler ends at once")
	case "crash-later":
		cmd := exec.Command("/usr/local/bin/real", os.Args[1:]...)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Start(); err != nil {
			panic(err)
		}
		time.Sleep(2 * time.Second)
		fmt.Println("this scheduler ends after 2 seconds")
		_ = cmd.Process.Kill()
	case "silent":
		time.Sleep(time.Hour)
	}
	os.Exit(7)
}
