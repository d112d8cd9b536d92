package image

import (
	"bytes"
	"context"
	"debug/elf"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// applets are the links in /bin. The list is fixed, because the binary may be for an architecture
// that does not run here. Debian's busybox-static has all of them.
//
//go:embed applets.txt
var applets string

const busyboxHint = "apt-get install busybox-static, then use /bin/busybox; for other architectures use an image as " +
	"the base"

// busyboxFiles returns the files of a base other than busybox.
func busyboxFiles() []entry {
	return []entry{
		{path: "dev", mode: 0o755, dir: true},
		{path: "etc/group", mode: 0o644, text: "root:x:0:\nnobody:x:65534:\nnonroot:x:65532:\n"},
		// Without this file the Go resolver of old releases queries the name server before /etc/hosts,
		// even for localhost.
		{path: "etc/nsswitch.conf", mode: 0o644, text: "hosts: files dns\n"},
		{path: "etc/passwd", mode: 0o644, text: "root:x:0:0:root:/root:/bin/sh\n" +
			"nobody:x:65534:65534:nobody:/:/bin/false\n" +
			"nonroot:x:65532:65532:nonroot:/home/nonroot:/bin/sh\n"},
		{path: "home/nonroot", mode: 0o755, owner: 65532, dir: true},
		{path: "proc", mode: 0o555, dir: true},
		{path: "root", mode: 0o700, dir: true},
		{path: "sys", mode: 0o555, dir: true},
		{path: "tmp", mode: 0o1777, dir: true},
		{path: "var/tmp", mode: 0o1777, dir: true},
	}
}

// newBase returns a base for a platform, with a static busybox binary unless file is empty.
func newBase(ctx context.Context, file, platform string) (v1.Image, error) {
	entries, from := busyboxFiles(), "ADD users and directories"
	if file != "" {
		from = "COPY busybox /bin/busybox"
		entries = append(entries, entry{path: "bin/busybox", mode: 0o755, source: file})
		for _, applet := range strings.Fields(applets) {
			entries = append(entries, entry{path: "bin/" + applet, link: "busybox"})
		}
	}
	layer, err := newLayer(ctx, entries)
	if err != nil {
		return nil, fmt.Errorf("create base: %w", err)
	}
	img, err := mutate.Append(ociEmpty(), mutate.Addendum{Layer: layer})
	if err != nil {
		return nil, fmt.Errorf("create base: %w", err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("create base: %w", err)
	}
	p, err := parsePlatform(platform)
	if err != nil {
		return nil, err
	}
	config.OS, config.Architecture, config.Variant = p.OS, p.Architecture, p.Variant
	config.Created = epoch()
	config.History = []v1.History{{Created: config.Created, CreatedBy: from}}
	config.Config.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	if file != "" {
		config.Config.Cmd = []string{"sh"}
	}
	return mutate.ConfigFile(img, config)
}

// CheckBusybox refuses a file that cannot run as /bin/busybox on all platforms.
func CheckBusybox(file string, platforms []string) error {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return problem.Invalidf(busyboxHint, "busybox %s: not found", file)
	}
	if err != nil {
		return fmt.Errorf("read busybox: %w", err)
	}
	program, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		return problem.Invalidf(busyboxHint, "busybox %s: not a Linux program: %w", file, err)
	}
	interpreted := slices.ContainsFunc(program.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP })
	made := elfPlatform(program)
	switch {
	case interpreted:
		return problem.Invalidf(busyboxHint,
			"busybox %s: it is dynamically linked, and the image has no libraries: a static busybox is required", file)
	case len(platforms) > 1:
		return problem.Invalidf("build one platform at a time, or use an image with all platforms as the base",
			"busybox %s: it is for %s and cannot be the base for %s", file, made, strings.Join(platforms, " and "))
	case !runsOn(made, platforms[0]):
		return problem.Invalidf(busyboxHint, "busybox %s: expected a program for %s, got %s (%s)", file, platforms[0],
			orUnknown(made), program.Machine)
	case !bytes.Contains(data, []byte("BusyBox")):
		return problem.Invalidf(busyboxHint, "busybox %s: the program is not busybox", file)
	}
	return nil
}

// ociEmpty returns an image without layers, with OCI media types.
func ociEmpty() v1.Image {
	return mutate.ConfigMediaType(mutate.MediaType(empty.Image, ociManifest), ociConfig)
}
