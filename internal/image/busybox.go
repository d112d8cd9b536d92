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

	"github.com/pmk-sched/pmk-sched/internal/problem"
)

// applets lists what /bin gets links for. It is fixed, not asked of the binary,
// which may be of an architecture that does not run here. Debian's busybox-static
// has each of them.
//
//go:embed applets.txt
var applets string

const busyboxHint = "apt-get install busybox-static, then use /bin/busybox; for other architectures use an image as the base"

// busyboxFiles are the entries beside the busybox and its links.
func busyboxFiles() []entry {
	return []entry{
		{path: "dev", mode: 0o755, folder: true},
		{path: "etc/group", mode: 0o644, text: "root:x:0:\nnobody:x:65534:\nnonroot:x:65532:\n"},
		// Without this file the Go resolver of old releases asks the name server
		// before it looks into /etc/hosts, also for localhost.
		{path: "etc/nsswitch.conf", mode: 0o644, text: "hosts: files dns\n"},
		{path: "etc/passwd", mode: 0o644, text: "root:x:0:0:root:/root:/bin/sh\n" +
			"nobody:x:65534:65534:nobody:/:/bin/false\n" +
			"nonroot:x:65532:65532:nonroot:/home/nonroot:/bin/sh\n"},
		{path: "home/nonroot", mode: 0o755, owner: 65532, folder: true},
		{path: "proc", mode: 0o555, folder: true},
		{path: "root", mode: 0o700, folder: true},
		{path: "sys", mode: 0o555, folder: true},
		{path: "tmp", mode: 0o1777, folder: true},
		{path: "var/tmp", mode: 0o1777, folder: true},
	}
}

// busyboxBase makes an image of a static busybox binary for its own platform.
func busyboxBase(ctx context.Context, file, platform string, created v1.Time) (v1.Image, error) {
	entries := append(busyboxFiles(), entry{path: "bin/busybox", mode: 0o755, source: file})
	for _, applet := range strings.Fields(applets) {
		entries = append(entries, entry{path: "bin/" + applet, link: "busybox"})
	}
	layer, err := newLayer(ctx, entries)
	if err != nil {
		return nil, fmt.Errorf("lay in busybox: %w", err)
	}
	img, err := mutate.Append(ociEmpty(), mutate.Addendum{Layer: layer})
	if err != nil {
		return nil, fmt.Errorf("lay in busybox: %w", err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("lay in busybox: %w", err)
	}
	p, err := parsePlatform(platform)
	if err != nil {
		return nil, err
	}
	config.OS, config.Architecture, config.Variant = p.OS, p.Architecture, p.Variant
	config.Created = created
	config.History = []v1.History{{Created: created, CreatedBy: "COPY busybox /bin/busybox"}}
	config.Config.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	config.Config.Cmd = []string{"sh"}
	return mutate.ConfigFile(img, config)
}

// checkBusybox refuses a file that would not run as /bin/busybox on each of the
// platforms.
func checkBusybox(file string, platforms []string) error {
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
		return problem.Invalidf(busyboxHint, "busybox %s: dynamically linked, but there are no libraries in the image: a static one is needed", file)
	case len(platforms) > 1:
		return problem.Invalidf("build one platform at a time, or use an image that has all of them as the base",
			"busybox %s: made for %s, but an image for %s is wanted: one busybox fits one architecture", file, made, strings.Join(platforms, " and "))
	case !runsOn(made, platforms[0]):
		return problem.Invalidf(busyboxHint, "busybox %s: made for %s (%s), but an image for %s is wanted", file, orUnknown(made), program.Machine, platforms[0])
	case !bytes.Contains(data, []byte("BusyBox")):
		return problem.Invalidf(busyboxHint, "busybox %s: a program, but not busybox", file)
	}
	return nil
}

func orUnknown(s string) string {
	if s == "" {
		return "an unknown platform"
	}
	return s
}

// ociEmpty is an image without layers whose media types are OCI's.
func ociEmpty() v1.Image {
	return mutate.ConfigMediaType(mutate.MediaType(empty.Image, ociManifest), ociConfig)
}
