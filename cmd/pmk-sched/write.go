package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
)

func toFileFlag() cli.Flag {
	return &cli.StringFlag{Name: "to-file", Usage: "write to `FILE` instead of standard output"}
}

// objects writes the YAML of objects in a format, to a file if one is given.
func (u *ui) objects(format, file string, text []byte) error {
	var out bytes.Buffer
	if format == "yaml" {
		out.Write(text)
	} else if err := writeObjects(&out, format, text); err != nil {
		return err
	}
	return u.write(file, out.Bytes())
}

// write writes to a file that only its owner may read, or to standard output if file is empty.
func (u *ui) write(file string, text []byte) error {
	if file != "" {
		return os.WriteFile(file, text, 0o600)
	}
	_, err := u.Out.Write(text)
	return err
}

// writeObjects writes objects as a List, or as a table with their names.
func writeObjects(w io.Writer, format string, text []byte) error {
	type object = map[string]any
	items := []object{}
	for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
		var o object
		if err := yaml.Unmarshal(document, &o); err != nil {
			return fmt.Errorf("read rendered objects: %w", err)
		}
		items = append(items, o)
	}
	list := object{"apiVersion": "v1", "kind": "List", "items": items}
	var p printer
	p.Row("KIND", "NAMESPACE", "NAME")
	for _, o := range items {
		meta, _ := o["metadata"].(object)
		namespace, _ := meta["namespace"].(string)
		p.Row(o["kind"], namespace, meta["name"])
	}
	return command.WriteData(w, format, list, p.String())
}

// writeFiles writes files below a directory.
func writeFiles(dir string, files map[string][]byte) error {
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("write to %s: %w", dir, err)
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			return fmt.Errorf("write to %s: %w", dir, err)
		}
	}
	return nil
}

// document writes a YAML document in a format, to a file if one is given.
func (u *ui) document(format, file string, text []byte) error {
	if format == "json" {
		compact, err := yaml.YAMLToJSON(text)
		if err != nil {
			return fmt.Errorf("write json: %w", err)
		}
		var out bytes.Buffer
		if err := json.Indent(&out, compact, "", "  "); err != nil {
			return fmt.Errorf("write json: %w", err)
		}
		text = append(out.Bytes(), '\n')
	}
	if file == "" {
		_, err := u.Out.Write(text)
		return err
	}
	if err := os.WriteFile(file, text, 0o644); err != nil { //nolint:gosec // a configuration is not secret
		return fmt.Errorf("write --to-file: %w", err)
	}
	return nil
}
