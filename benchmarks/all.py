"""Every benchmark, one after the other: `make bench`."""

from benchmarks import (
    accounting,
    count_tables,
    distances,
    face_value,
    histogram_posterior,
    noisy_tree,
    posterior,
    regression,
    release,
    start_up,
    urn,
)


def main() -> None:
    for module in (
        start_up,
        accounting,
        urn,
        distances,
        release,
        posterior,
        histogram_posterior,
        face_value,
        noisy_tree,
        count_tables,
        regression,
    ):
        print(f"\n## {(module.__doc__ or '').splitlines()[0]}")
        module.main()


if __name__ == "__main__":
    main()
