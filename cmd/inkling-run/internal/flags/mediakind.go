package flags

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/inkling-go/inkling/internal/chat"
)

// KindName is the word for a kind of media, for one and for several.
type KindName struct{ One, Many string }

// KindNames are the words for media.
var KindNames = map[chat.Kind]KindName{
	chat.Image: {"picture", "pictures"},
	chat.Audio: {"sound", "sounds"},
	chat.Video: {"video", "videos"},
}

// suffixes are the ends of the names of files with media. Animations are
// pictures unless the user says otherwise.
var suffixes = map[chat.Kind]string{
	chat.Image: " .png .apng .jpg .jpeg .jpe .webp .gif .bmp .tif .tiff ",
	chat.Audio: " .wav .flac .ogg .oga .opus .mp3 .m4a .aac .aif .aiff .wma .amr .ac3 .caf .au ",
	chat.Video: " .mp4 .m4v .mov .mkv .webm .avi .mpg .mpeg .ts .m2ts .ogv .flv .wmv .3gp ",
}

// NameKind is what the name of a file says that is in it.
func NameKind(path string) (chat.Kind, bool) {
	ext := strings.ToLower(filepath.Ext(path))
	for kind, all := range suffixes {
		if ext != "" && strings.Contains(all, " "+ext+" ") {
			return kind, true
		}
	}
	return chat.Text, false
}

// FileKind is what a file holds: by its name, else by its first bytes. A folder,
// and a pattern of numbered pictures, is a video.
func FileKind(path string) (chat.Kind, error) {
	st, err := os.Stat(path)
	switch {
	case err != nil && strings.ContainsRune(path, '%'):
		return chat.Video, nil // whether it is there, the decoder says
	case err != nil:
		return chat.Text, err
	case st.IsDir():
		return chat.Video, nil
	}
	if kind, ok := NameKind(path); ok {
		return kind, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return chat.Text, err
	}
	defer f.Close()
	head := make([]byte, 512)
	n, err := io.ReadFull(f, head)
	if n == 0 && err != nil {
		return chat.Text, fmt.Errorf("%s: empty file", path)
	}
	mime := http.DetectContentType(head[:n])
	for prefix, kind := range map[string]chat.Kind{
		"image/": chat.Image, "audio/": chat.Audio, "video/": chat.Video, "application/ogg": chat.Audio,
	} {
		if strings.HasPrefix(mime, prefix) {
			return kind, nil
		}
	}
	return chat.Text, fmt.Errorf("%s: neither its name nor its first bytes say that it is a picture, a sound or a video (--as says it)", path)
}

// MediumName names a medium for people; a data URL is not for them.
func MediumName(p chat.Part) string {
	if strings.HasPrefix(p.Source, "data:") {
		return p.Kind.String() + " in a data URL"
	}
	return cmp.Or(p.Source, p.Kind.String())
}
