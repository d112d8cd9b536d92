package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/pmk-sched/pmk-sched/internal/build"
	"github.com/pmk-sched/pmk-sched/internal/image"
)

// pack makes the image and delivers it.
func pack(ctx context.Context, u *ui, o buildOptions, result *build.Result, data *buildData) error {
	files := map[string][]image.File{}
	for _, p := range o.Platforms {
		binary, ok := result.Binary(o.program(), p)
		if !ok {
			return fmt.Errorf("pack image %s: there is no %s for %s", o.Tag, o.program(), p)
		}
		files[p.String()] = []image.File{{Path: o.programPath(), Source: binary.Path}}
	}
	labels := image.Description{
		Title: o.program(), Version: data.Release, URL: projectURL, Release: data.Release,
		Plugins: strings.Join(pluginNames(data.Plugins), ","), Origin: cmp.Or(result.Info.Module, data.Source),
	}.Labels()
	var built *image.Built
	err := during(u, "pack image "+o.Tag, func() (err error) {
		built, err = image.Build(ctx, image.Options{
			Base: o.Base, Platforms: data.Platforms, Files: files, Entrypoint: []string{o.programPath()},
			Labels: labels, Annotations: labels, Keychain: authn.DefaultKeychain,
		})
		return err
	})
	if err != nil {
		return err
	}
	data.Digest = built.Digest
	return deliver(ctx, u, o, built, data)
}

// deliver takes the image to every destination that was named.
func deliver(ctx context.Context, u *ui, o buildOptions, built *image.Built, data *buildData) error {
	for _, path := range o.Outputs {
		write := image.WriteLayout
		if strings.HasSuffix(path, ".tar") {
			write = image.WriteArchive
		}
		if err := during(u, "write "+path, func() error { return write(ctx, built, o.Tag, path) }); err != nil {
			return err
		}
		data.Written = append(data.Written, path)
	}
	for _, target := range o.Loads {
		err := during(u, "load into "+target.Runtime, func() error {
			if target.Runtime == "docker" {
				return image.LoadDocker(ctx, built, o.Tag)
			}
			return image.LoadContainerd(ctx, built, o.Tag, target.Socket)
		})
		if err != nil {
			return err
		}
		data.Written = append(data.Written, target.Runtime)
	}
	if o.Push {
		err := during(u, "push "+o.Tag, func() error {
			_, err := image.Push(ctx, built, o.Tag, image.PushOptions{Keychain: authn.DefaultKeychain})
			return err
		})
		if err != nil {
			return err
		}
		data.Written = append(data.Written, "registry")
	}
	if len(data.Written) == 0 {
		u.warn("the image was not put anywhere: add --push, --load containerd, or --output FILE.tar; what was compiled is kept")
	}
	return nil
}

// writeBinaries copies the program out of the cache.
func writeBinaries(result *build.Result, o buildOptions, data *buildData) error {
	for _, p := range o.Platforms {
		binary, ok := result.Binary(o.program(), p)
		if !ok {
			return fmt.Errorf("write --binary: there is no %s for %s", o.program(), p)
		}
		to := o.Binary
		if len(o.Platforms) > 1 {
			to = fmt.Sprintf("%s-%s-%s", o.Binary, p.OS, p.Arch)
		}
		if err := copyProgram(binary.Path, to); err != nil {
			return fmt.Errorf("write --binary: %w", err)
		}
		data.Written = append(data.Written, to)
	}
	return nil
}

// copyProgram copies an executable file; to is complete or not there.
func copyProgram(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	part, err := os.CreateTemp(filepath.Dir(to), filepath.Base(to)+".part-*")
	if err != nil {
		return err
	}
	defer func() {
		if e := os.Remove(part.Name()); err == nil && e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = e
		}
	}()
	_, err = io.Copy(part, in)
	if err = errors.Join(err, part.Chmod(0o755), part.Close()); err != nil {
		return err
	}
	return os.Rename(part.Name(), to)
}
