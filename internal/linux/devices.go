package linux

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// MajorsOf gives the major numbers of those character devices whose drivers are wanted, as /proc/devices has them.
func MajorsOf(wanted func(driver string) bool) ([]uint16, error) {
	const file = "/proc/devices"
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var majors []uint16
	lines := bufio.NewScanner(f)
	for lines.Scan() && lines.Text() != "Block devices:" {
		number, driver, ok := strings.Cut(strings.TrimSpace(lines.Text()), " ")
		major, err := strconv.ParseUint(number, 10, 16)
		if ok && err == nil && wanted(driver) {
			majors = append(majors, uint16(major))
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	return majors, nil
}
