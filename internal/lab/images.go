//go:build linux

package lab

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/build"
	"github.com/pmk-sched/pmk-sched/internal/image"
)

// pauseScript is the program of PauseImage. As PID 1 of a pod sandbox it must handle SIGTERM, or
// the kernel ignores the signal.
const (
	pausePath   = "/usr/local/bin/pause"
	pauseScript = "#!/bin/sh\ntrap 'exit 0' TERM INT\nwhile :; do sleep 86400 & wait $!; done\n"
)

// labImage is an image that a lab loads into its containerd.
type labImage struct {
	ref        string
	entrypoint []string
	files      []image.File
}

// labImages returns the images of a lab: the control plane from the programs, and the images that
// hold only busybox.
func labImages(n nodeConfig, programs map[string]string, pause, busybox string) []labImage {
	images := []labImage{
		{ref: PauseImage, entrypoint: []string{pausePath}, files: []image.File{{Path: pausePath, Source: pause}}},
		{ref: BusyboxImage, entrypoint: []string{"/bin/sh"}, files: []image.File{{Path: "/usr/local/bin/busybox", Source: busybox}}},
	}
	for _, name := range components() {
		path := "/usr/local/bin/" + name
		images = append(images, labImage{
			ref:        ComponentImage(name, n.release),
			entrypoint: []string{path},
			files:      []image.File{{Path: path, Source: programs[name]}},
		})
	}
	return images
}

// archive writes the image to an archive in dir, unless an archive of the same files exists.
func (i labImage) archive(ctx context.Context, dir, busybox string) (string, error) {
	key, err := i.key(busybox)
	if err != nil {
		return "", fmt.Errorf("create image %s: %w", i.ref, err)
	}
	name := strings.NewReplacer("/", "_", ":", "_").Replace(strings.TrimPrefix(i.ref, imagePrefix))
	path := filepath.Join(dir, name+"-"+key+".tar")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	platform := build.Host().String()
	built, err := image.Build(ctx, image.Options{
		Base:       image.Base{Busybox: busybox},
		Platforms:  []string{platform},
		Files:      map[string][]image.File{platform: i.files},
		Entrypoint: i.entrypoint,
		Env:        []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		User:       "0:0", // The control plane reads root's keys and takes low ports.
	})
	if err != nil {
		return "", fmt.Errorf("create image %s: %w", i.ref, err)
	}
	if err := image.WriteArchive(ctx, built, i.ref, path+".part"); err != nil {
		return "", fmt.Errorf("create image %s: %w", i.ref, err)
	}
	if err := os.Rename(path+".part", path); err != nil {
		return "", fmt.Errorf("create image %s: %w", i.ref, err)
	}
	return path, nil
}

// key depends on everything that an image consists of. The files are compiled programs that never
// change in place.
func (i labImage) key(busybox string) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%q\n", i.ref, i.entrypoint)
	for _, f := range append([]image.File{{Path: "/bin/busybox", Source: busybox}}, i.files...) {
		info, err := os.Stat(f.Source)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %s %d %d\n", f.Path, f.Source, info.Size(), info.ModTime().UnixNano())
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}

// archives writes all images to dir. Labs that start at the same time do so one after the other and
// share the result.
func archives(ctx context.Context, n nodeConfig, programs map[string]string, dir, busybox string) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("create images: %w", err)
	}
	unlock, err := lockDir(ctx, dir, 10*time.Minute)
	if err != nil {
		return nil, fmt.Errorf("create images: lock %s: %w", dir, err)
	}
	defer unlock()
	pause := filepath.Join(dir, "pause.sh")
	if have, err := os.ReadFile(pause); err != nil || string(have) != pauseScript {
		if err := os.WriteFile(pause, []byte(pauseScript), 0o755); err != nil {
			return nil, fmt.Errorf("create images: %w", err)
		}
	}
	var paths []string
	for _, i := range labImages(n, programs, pause, busybox) {
		path, err := i.archive(ctx, dir, busybox)
		if err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}
