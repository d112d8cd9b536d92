// Command release makes the files of a release from compiled programs: archives, images, a krew
// manifest, a Homebrew formula and SHA256SUMS. hack/release.sh compiles the programs and calls it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var r release
	flag.StringVar(&r.version, "version", "", "version of the release, such as v0.1.0")
	flag.StringVar(&r.stage, "stage", "", "directory with LICENSE, man/, completion/ and OS_ARCH/ with programs, "+
		"for Linux also with Go in go/")
	flag.StringVar(&r.dist, "dist", "dist", "directory to write to")
	flag.Parse()
	err := errors.New("usage: SOURCE_DATE_EPOCH=SECONDS release -version VERSION -stage DIR")
	if seconds, bad := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64); bad == nil && r.version+r.stage != "" {
		r.modified = time.Unix(seconds, 0).UTC()
		err = r.write(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// release describes the files to write.
type release struct {
	version, stage, dist string
	// modified is the modification time in archives.
	modified time.Time
}

// write writes all files to r.dist. Files that are in it before, such as packages, are only listed
// in SHA256SUMS.
func (r release) write(ctx context.Context) error {
	archives, err := r.archives()
	if err != nil {
		return err
	}
	if err := r.manifests(archives); err != nil {
		return err
	}
	if err := r.images(ctx); err != nil {
		return err
	}
	return writeSums(r.dist)
}
