package files

import "weir/internal/pinned"

// Uses tells how full the maps of secret files are.
func (f *Files) Uses() ([]pinned.Use, error) {
	return pinned.Uses(f.objects.SecretNodes, f.objects.SecretNames, f.objects.SecretOpens)
}
