"""Users' own outputters: files in ``outputter_dirs`` with a function ``output(data, **kwargs)``, as for Salt.

An outputter has the name of its file, or the name that ``__virtual__`` returns. It replaces a built-in outputter of that name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

from saltern.kit.command.output.options import OutputOptions
from statecore.loader.find import ModuleFile
from statecore.loader.loaded_module import Unusable
from statecore.loader.user_module import UserModule


def find(name: str, options: OutputOptions) -> Callable[[object, OutputOptions], str] | None:
    """Return the user's outputter of this name, None if there is none. Raises ValueError if its file cannot be loaded.

    The returned function raises ValueError with the file's name for any exception of the outputter.
    """
    module = _module(name, options.outputter_dirs)
    if module is None:
        return None

    def show(data: object, options: OutputOptions) -> str:
        module.__dict__["__opts__"] = dict(options.opts)
        try:
            text = module.output(data, _retcode=options.retcode)
        except Exception as error:
            raise ValueError(f"{module.__file__}: {type(error).__name__}: {error}") from error
        return "" if text is None else str(text)

    return show


@cache
def _module(name: str, directories: tuple[str, ...]) -> ModuleType | None:
    for path in _candidates(name, directories):
        try:
            module = UserModule(ModuleFile("output", path.stem, path, native=False)).module
            serves = _virtual_name(module, path.stem)
        except Unusable as error:
            raise ValueError(str(error)) from error
        except Exception as error:
            raise ValueError(f"{path}: __virtual__ failed: {type(error).__name__}: {error}") from error
        if serves == name and callable(getattr(module, "output", None)):
            return module
    return None


def _candidates(name: str, directories: tuple[str, ...]) -> Iterator[Path]:
    """Yield the files in which a user's outputter of this name may be defined.

    First comes the file of that name, then files whose text holds the name, because their ``__virtual__`` may return it.
    """
    files = [path for directory in directories for path in sorted(Path(directory).glob("*.py"))]
    yield from (path for path in files if path.stem == name)
    for path in files:
        text = path.read_text(errors="replace") if path.stem != name else ""
        if f'"{name}"' in text or f"'{name}'" in text:
            yield path


def _virtual_name(module: ModuleType, stem: str) -> str | None:
    name = str(getattr(module, "__virtualname__", None) or stem)
    virtual = getattr(module, "__virtual__", None)
    if not callable(virtual):
        return name
    answer = virtual()
    answer = answer[0] if isinstance(answer, tuple) else answer
    return answer if isinstance(answer, str) else name if answer is True else None
