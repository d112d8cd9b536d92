package main

import (
	"embed"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"text/template"
)

// downloads is the location of release files: downloads/VERSION/FILE.
const downloads = "https://github.com/pmk-sched/pmk-sched/releases/download"

//go:embed krew.yaml homebrew.rb
var templates embed.FS

// manifests writes the krew manifest and the Homebrew formula for the archives.
func (r release) manifests(archives []archive) error {
	data := struct {
		Version, Number, URL string
		Archives             []archive
	}{r.version, strings.TrimPrefix(r.version, "v"), downloads + "/" + r.version, archives}
	parsed, err := template.New("").Funcs(template.FuncMap{"of": platformOf}).ParseFS(templates, "*")
	if err != nil {
		return err
	}
	for _, t := range parsed.Templates() {
		to := filepath.Join(r.dist, fmt.Sprintf("pmk-sched_%s_%s", r.version, t.Name()))
		if err := writeFile(to, func(w io.Writer) error { return t.Execute(w, data) }); err != nil {
			return fmt.Errorf("write %s: %w", to, err)
		}
	}
	return nil
}

// platformOf returns the archive for a platform.
func platformOf(archives []archive, system, arch string) (archive, error) {
	for _, a := range archives {
		if a.OS == system && a.Arch == arch {
			return a, nil
		}
	}
	return archive{}, fmt.Errorf("no archive for %s/%s", system, arch)
}
