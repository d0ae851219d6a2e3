package main

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// maxFlood bounds what one flood writes: a log that nothing else ends must not fill a disk.
const maxFlood = 1 << 30

// flood writes lines of 100 bytes until so many bytes are written, and then one that says so.
func flood(log io.Writer, arguments []string) error {
	if len(arguments) != 1 {
		return fmt.Errorf("usage: sample-http flood BYTES")
	}
	bytes, err := strconv.ParseUint(arguments[0], 10, 31)
	if err != nil || bytes > maxFlood {
		return fmt.Errorf("bytes must be a whole number of at most %d", maxFlood)
	}
	buffer := bufio.NewWriterSize(log, 64*1024)
	line := strings.Repeat("x", 99) + "\n"
	for written := uint64(0); written < bytes; written += uint64(len(line)) {
		if _, err := buffer.WriteString(line); err != nil {
			return err
		}
	}
	fmt.Fprintf(buffer, "wrote %d\n", bytes)
	return buffer.Flush()
}
