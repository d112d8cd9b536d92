package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/versions"
)

// version is set by the linker (-X main.version=…).
var version string

// ownVersion is what this program calls itself: what the linker was told, else
// what `go install` recorded, else "dev".
func ownVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "dev"
}

// versionData is what `version` prints.
type versionData struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	// Oldest and Newest are the Kubernetes minors that are built and tested.
	Oldest string `json:"oldestKubernetes"`
	Newest string `json:"newestKubernetes"`
}

func newVersionData() versionData {
	releases := versions.Releases()
	return versionData{
		Version:  ownVersion(),
		Go:       runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Oldest:   releases[len(releases)-1].MinorString(),
		Newest:   releases[0].MinorString(),
	}
}

func versionCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name:  "version",
		Usage: "print the version of this program and the Kubernetes releases it knows",
		Flags: []cli.Flag{outputFlag()},
		Action: func(c *cli.Context) error {
			v := newVersionData()
			return u.data(c.String("o"), v, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "pmk-sched\t%s\ngo\t%s\nplatform\t%s\nkubernetes\t%s to %s\n", v.Version, v.Go, v.Platform, v.Oldest, v.Newest)
				return err
			})
		},
	}
}
