package run

import (
	"fmt"
	"os"
	"path/filepath"
)

// envCache names the directory of [CacheDir].
const envCache = "PMK_SCHED_CACHE"

// CacheDir returns the directory in which builds are kept, by the tests as by pmk-sched itself.
func CacheDir() (string, error) {
	if cache := os.Getenv(envCache); cache != "" {
		return cache, nil
	}
	user, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the user's cache directory: %w", err)
	}
	return filepath.Join(user, "pmk-sched"), nil
}
