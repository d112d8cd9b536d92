// Command wrapper stands in for a kube-scheduler that goes wrong: it answers what is asked before it runs, then does what WRAP says.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"time"
)

// behaviour and version are set at link time.
var behaviour, version string

func main() {
	for i, arg := range os.Args {
		switch {
		case arg == "--version":
			fmt.Println("Kubernetes " + version)
			return
		case arg == "--write-config-to":
			if err := os.WriteFile(os.Args[i+1], nil, 0o600); err != nil {
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
		time.Sleep(20 * time.Second)
		fmt.Println("this scheduler ends after 20 seconds")
		_ = cmd.Process.Kill()
	case "silent":
		time.Sleep(time.Hour)
	}
	os.Exit(7)
}
