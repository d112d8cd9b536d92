package session

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"

	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/internal/image"
	"github.com/pmk-sched/pmk-sched/internal/problem"
	"github.com/pmk-sched/pmk-sched/internal/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/internal/sysdump/redact"
)

// Paths in an image for simulations.
const (
	imageDir  = "/opt/pmk-sched"
	imagePlan = imageDir + "/matrix.json"
)

// copySteps returns the steps of a scenario with copies of their files in dir. A copy has only what schedulers read of the containers, and no Secret: it may
// leave this machine.
func copySteps(ctx context.Context, sc MatrixScenario, dir string, number int) ([]scenario.Step, error) {
	request := SimulateRequest{Dir: sc.Dir}
	copies := 0
	copyFiles := func(paths []string) (string, error) {
		manifests, err := request.manifests(ctx, paths)
		if err != nil {
			return "", err
		}
		var text bytes.Buffer
		for _, o := range manifests {
			if err := json.NewEncoder(&text).Encode(stripManifest(o)); err != nil {
				return "", err
			}
		}
		copies++
		file := filepath.Join(dir, fmt.Sprintf("scenario-%d-%d.json", number, copies))
		return file, os.WriteFile(file, text.Bytes(), 0o600)
	}
	steps := slices.Clone(sc.Steps)
	for i := range steps {
		step := &steps[i]
		if len(step.Files) > 0 {
			file, err := copyFiles(step.Files)
			if err != nil {
				return nil, err
			}
			step.Files = []string{file}
		}
		step.Add = slices.Clone(step.Add)
		for j, add := range step.Add {
			if !add.IsFile() {
				continue
			}
			file, err := copyFiles([]string{add.Template})
			if err != nil {
				return nil, err
			}
			step.Add[j].Template = file
		}
	}
	_, err := readSteps(ctx, SimulateRequest{Steps: steps}) // what is wrong is reported before anything runs
	return steps, err
}

// stripManifest removes what may be secret and no scheduler reads: the content of Secrets and ConfigMaps, annotations that have a copy of an object, and
// environment and command of containers.
func stripManifest(o map[string]any) map[string]any {
	if o["kind"] == "Secret" || o["kind"] == "ConfigMap" {
		metadata, _ := o["metadata"].(map[string]any)
		return map[string]any{
			"apiVersion": o["apiVersion"], "kind": o["kind"], "metadata": map[string]any{"name": metadata["name"], "namespace": metadata["namespace"]},
		}
	}
	kept, _ := stripValue(o).(map[string]any)
	return kept
}

func stripValue(value any) any {
	switch v := value.(type) {
	case []any:
		kept := make([]any, len(v))
		for i := range v {
			kept[i] = stripValue(v[i])
		}
		return kept
	case map[string]any:
		kept := map[string]any{}
		for key, field := range v {
			switch key {
			case "containers", "initContainers", "ephemeralContainers":
				kept[key] = stripContainers(field)
			case "managedFields", "kubectl.kubernetes.io/last-applied-configuration":
			default:
				kept[key] = stripValue(field)
			}
		}
		return kept
	}
	return value
}

func stripContainers(value any) any {
	list, ok := value.([]any)
	if !ok {
		return value
	}
	kept := []any{}
	for _, item := range list {
		container, ok := item.(map[string]any)
		if !ok {
			return value // the API server refuses it
		}
		less := map[string]any{}
		for key, field := range container {
			if !slices.Contains([]string{"env", "envFrom", "command", "args", "lifecycle", "livenessProbe", "readinessProbe", "startupProbe"}, key) {
				less[key] = field
			}
		}
		kept = append(kept, less)
	}
	return kept
}

// imageFiles returns the files of an image in which [Session.SimulateCell] runs each simulation of the plan. The plan with the paths in the image is written
// to dir.
func (p *matrixPlan) imageFiles(dir string) ([]image.File, error) {
	var files []image.File
	add := func(source, kind string, mode int64) string {
		if i := slices.IndexFunc(files, func(f image.File) bool { return f.Source == source }); i >= 0 {
			return files[i].Path
		}
		to := path.Join(imageDir, kind, strconv.Itoa(len(files)), filepath.Base(source))
		files = append(files, image.File{Path: to, Source: source, Mode: mode})
		return to
	}
	inImage := matrixPlan{Timeout: p.Timeout, Cells: p.Cells}
	for _, s := range p.Schedulers {
		if err := checkNoSecrets(s); err != nil {
			return nil, err
		}
		s.Program, s.KubeAPIServer, s.Etcd = add(s.Program, "programs", 0o755), add(s.KubeAPIServer, "programs", 0o755), add(s.Etcd, "programs", 0o755)
		inImage.Schedulers = append(inImage.Schedulers, s)
	}
	for _, file := range p.Snapshots {
		inImage.Snapshots = append(inImage.Snapshots, add(file, "snapshots", 0o644))
	}
	for _, steps := range p.Scenarios {
		steps = slices.Clone(steps)
		for i := range steps {
			step := &steps[i]
			step.Files, step.Add = slices.Clone(step.Files), slices.Clone(step.Add)
			for j := range step.Files {
				step.Files[j] = add(step.Files[j], "scenarios", 0o644)
			}
			for j := range step.Add {
				if step.Add[j].IsFile() {
					step.Add[j].Template = add(step.Add[j].Template, "scenarios", 0o644)
				}
			}
		}
		inImage.Scenarios = append(inImage.Scenarios, steps)
	}
	text, err := json.Marshal(inImage)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, path.Base(imagePlan))
	return append(files, image.File{Path: imagePlan, Source: file, Mode: 0o644}), os.WriteFile(file, text, 0o600)
}

// checkNoSecrets refuses a scheduler whose configuration must not be in an image.
func checkNoSecrets(s preparedScheduler) error {
	texts := [][]byte{s.Scheduler.Configuration}
	for _, p := range s.Plugins {
		texts = append(texts, p.Args)
	}
	for _, text := range texts {
		var value any
		if err := yaml.Unmarshal(text, &value); err != nil {
			return problem.Invalidf("", "read the configuration of scheduler %s: %w", s.source, err)
		}
		value = withoutCertificates(value)
		if !reflect.DeepEqual(value, redact.New().Value(value)) {
			return problem.Invalidf("remove it, or simulate this scheduler without --job",
				"the configuration of scheduler %s has a key, a token or a password, which must not be in an image", s.source)
		}
	}
	return nil
}

// withoutCertificates removes what of the TLS configuration of extenders is not secret.
func withoutCertificates(value any) any {
	switch v := value.(type) {
	case []any:
		for i := range v {
			v[i] = withoutCertificates(v[i])
		}
	case map[string]any:
		delete(v, "caData")
		delete(v, "certData")
		for key := range v {
			v[key] = withoutCertificates(v[key])
		}
	}
	return value
}

// hashFiles returns a hash of the contents and the places of files, for a tag.
func hashFiles(files []image.File) (hash string, err error) {
	sum := sha256.New()
	for _, f := range files {
		fmt.Fprintf(sum, "%s %o\n", f.Path, f.Mode)
		in, err := os.Open(f.Source)
		if err != nil {
			return "", err
		}
		_, err = io.Copy(sum, in)
		if err = errors.Join(err, in.Close()); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%x", sum.Sum(nil))[:12], nil
}
