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

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/artifact/kubeadm"
)

// pauseScript is PauseImage's program. As PID 1 in a pod sandbox, it must handle SIGTERM, or the
// kernel ignores the signal. "kubeadm upgrade" runs it with -v, which must end.
const (
	pausePath   = "/usr/local/bin/pause"
	pauseScript = "#!/bin/sh\n[ \"$1\" != -v ] || exit 0\ntrap 'exit 0' TERM INT\nwhile :; do sleep 86400 & wait $!; " +
		"done\n"
)

// labImage is an image that a lab loads into its containerd.
type labImage struct {
	ref        string
	entrypoint []string
	files      []image.File
	// shell is set for an image with busybox; other images have no shell.
	shell bool
	// master is set for an image that only control-plane nodes need.
	master bool
}

// plainImages are the images for pods of any kind.
func plainImages(pause, busybox string) []labImage {
	return []labImage{
		{ref: PauseImage, entrypoint: []string{pausePath}, files: []image.File{{Path: pausePath, Source: pause}},
			shell: true},
		{ref: BusyboxImage, entrypoint: []string{"/bin/sh"},
			files: []image.File{{Path: "/usr/local/bin/busybox", Source: busybox}}, shell: true},
	}
}

// labImages returns the images of a lab without kubeadm: the control plane from the programs, and
// the images that hold only busybox.
func labImages(n nodeConfig, programs map[string]string, pause, busybox string) []labImage {
	images := plainImages(pause, busybox)
	for _, name := range components() {
		path := "/usr/local/bin/" + name
		images = append(images, labImage{
			ref:        componentImage(name, n.release),
			entrypoint: []string{path},
			files:      []image.File{{Path: path, Source: programs[name]}},
			shell:      true, master: true,
		})
	}
	return images
}

// kubeadmImages returns the images for a lab that kubeadm creates, with the names and structure of
// the Kubernetes release images (build/server-image, cluster/images/etcd, build/pause): no shell, a
// runner as the entrypoint, and the program is named only by the static pod's command.
func kubeadmImages(names kubeadm.Images, programs map[string]string, pause, busybox string) []labImage {
	images := append(plainImages(pause, busybox), labImage{
		ref: names["pause"], entrypoint: []string{"/pause"}, files: []image.File{{Path: "/pause", Source: pause}},
		shell: true,
	})
	for _, name := range kubeadm.Components() {
		i := labImage{ref: names[name], files: []image.File{{Path: "/usr/local/bin/" + name, Source: programs[name]}},
			master: true}
		if name != "etcd" {
			i.entrypoint = []string{"/" + runner}
			i.files = append(i.files, image.File{Path: "/" + runner, Source: programs[runner]})
		}
		images = append(images, i)
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
	base := image.Base{Empty: true}
	if i.shell {
		base = image.Base{Busybox: busybox}
	}
	built, err := image.Build(ctx, image.Options{
		Base:       base,
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
	fmt.Fprintf(h, "%s\n%q\n%t\n", i.ref, i.entrypoint, i.shell)
	for _, f := range append([]image.File{{Path: "/bin/busybox", Source: busybox}}, i.files...) {
		info, err := os.Stat(f.Source)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %s %d %d\n", f.Path, f.Source, info.Size(), info.ModTime().UnixNano())
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}

type archive struct {
	path string
	// master is set if only control-plane nodes need it.
	master bool
}

// archives writes the images to dir. list returns them for the pause program's path. Labs that
// start at the same time do so one after the other and share the result.
func archives(ctx context.Context, dir, busybox string, list func(pause string) []labImage) ([]archive, error) {
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
	var made []archive
	for _, i := range list(pause) {
		path, err := i.archive(ctx, dir, busybox)
		if err != nil {
			return nil, err
		}
		made = append(made, archive{path, i.master})
	}
	return made, nil
}

func (u *bringUp) makeImages(ctx context.Context) (err error) {
	dir, busybox := filepath.Join(u.o.CacheDir, "lab-images"), u.machine.busybox
	u.archives, err = archives(ctx, dir, busybox, func(pause string) []labImage {
		switch {
		case u.lab.byKubeadm():
			return kubeadmImages(u.images, u.programs, pause, busybox)
		case u.lab.hosted():
			return plainImages(pause, busybox)
		}
		return labImages(nodeConfig{release: u.o.Release}, u.programs, pause, busybox)
	})
	return err
}

// archivesFor returns the paths of the archives with the images that a node needs.
func (u *bringUp) archivesFor(n *Node) []string {
	var paths []string
	for _, a := range u.archives {
		if n.role == ControlPlane || !a.master {
			paths = append(paths, a.path)
		}
	}
	return paths
}
