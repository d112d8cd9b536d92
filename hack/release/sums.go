package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

const sumsFile = "SHA256SUMS"

// writeSums writes the checksums of a directory's files, sorted by name, as sha256sum prints them.
func writeSums(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, sumsFile), func(w io.Writer) error {
		for _, entry := range entries {
			if entry.Name() == sumsFile {
				continue
			}
			digest, err := sum(filepath.Join(dir, entry.Name()))
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintf(w, "%s  %s\n", digest, entry.Name()); err != nil {
				return err
			}
		}
		return nil
	})
}

// sum returns a file's SHA-256 in hexadecimal.
func sum(path string) (string, error) {
	in, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer in.Close()
	digest := sha256.New()
	if _, err := io.Copy(digest, in); err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	return hex.EncodeToString(digest.Sum(nil)), nil
}
